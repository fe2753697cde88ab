//! The table of settings in docs/SERVING.md: flag, variable, key of the settings file, default, range and meaning.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::num::NonZeroU32;

use clap::{Arg, Args, Command, FromArgMatches};
use tollgate::HeaderStyle;

use super::cli::{default_of, meaning_of};
use super::serde_fields::fields_of;
use super::snapshot::assert_section_current;
use crate::settings::args::ServeArgs;
use crate::settings::{Environment, Settings, SettingsFile};

/// Flags without a key in the settings file, each with the reason.
const FLAG_ONLY: [(&str, &str); 1] = [("config", "names the settings file itself")];

/// Variables that clap does not read, each with the reason.
const OTHER_VARIABLES: [(&str, &str, &str); 1] =
    [("redis", "TOLLGATE_REDIS", "read by StoreChoice, because the flag may conflict with it")];

/// Defaults that depend on other settings or on the machine, so that they are not one value.
const COMPUTED: [&str; 3] = ["admin", "redis", "node-id"];

/// Flags that a section or page describes in more detail.
const LINKS: [(&str, &str); 18] = [
    ("admin", "[DASHBOARD.md](DASHBOARD.md)"),
    ("grpc", "[ENVOY.md](ENVOY.md)"),
    ("resp", "[RESP.md](RESP.md)"),
    ("trusted-proxies", "[PROXIES.md](PROXIES.md)"),
    ("policy", "[POLICY.md](POLICY.md)"),
    ("redis", "[Redis](#redis)"),
    ("scripting", "[REDIS.md](REDIS.md)"),
    ("node-lifetime-ms", "[Redis](#redis)"),
    ("breaker-failures", "[OUTAGES.md](OUTAGES.md)"),
    ("distributed", "[OUTAGES.md](OUTAGES.md#shadow-mode-before-rollout)"),
    ("require-redis", "[OUTAGES.md](OUTAGES.md#start-without-redis)"),
    ("expected-nodes", "[OUTAGES.md](OUTAGES.md#start-without-redis)"),
    ("data-dir", "[State](#state)"),
    ("drain-ms", "[Signals](#signals)"),
    ("tls-cert", "[TLS](#tls)"),
    ("tls-client-ca", "[TLS](#tls)"),
    ("trace-decisions", "[Tracing](#tracing)"),
    ("allow-unprotected", "[OPERATING.md](OPERATING.md#tokens)"),
];

fn command() -> Command {
    ServeArgs::augment_args(Command::new("serve"))
}

/// Returns every flag by its name without dashes.
fn flags(command: &Command) -> Vec<(&str, &Arg)> {
    command.get_arguments().filter_map(|arg| Some((arg.get_long()?, arg))).collect()
}

fn key_of(flag: &str) -> Option<String> {
    let is_flag_only = FLAG_ONLY.iter().any(|(name, _)| *name == flag);
    (!is_flag_only).then(|| flag.replace('-', "_"))
}

fn variable_of(flag: &str, arg: &Arg) -> Option<String> {
    let other = OTHER_VARIABLES.iter().find(|(name, ..)| *name == flag);
    let env = arg.get_env().map(|name| name.to_string_lossy().into_owned());
    env.or_else(|| other.map(|(_, name, _)| (*name).to_owned()))
}

/// Resolves the settings with these arguments only.
fn resolve(arguments: &[&str]) -> Result<Settings, String> {
    let arguments = std::iter::once("serve").chain(arguments.iter().copied());
    // Variables of the process that runs the test must not count.
    let command = command().mut_args(|arg| arg.env(None::<&str>));
    let matches = command.try_get_matches_from(arguments).map_err(|error| error.to_string())?;
    let args = ServeArgs::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    let environment = Environment::default();
    let settings = Settings::resolve(args, SettingsFile::default(), &environment, &[]);
    settings.map_err(|error| error.to_string())
}

/// Returns the range of a numeric flag, from the error for a value above it; `None` for other flags.
fn range_of(flag: &str, arg: &Arg) -> Option<String> {
    let value_name = arg.get_value_names()?.first()?.as_str();
    if !["N", "MS"].contains(&value_name) {
        return None;
    }
    let setting = format!("--{flag}");
    let error = resolve(&[&setting, &u64::MAX.to_string()]).expect_err(flag);
    let (_, range) = error.split_once("out of range; use ").expect(&error);
    Some(range.to_owned())
}

/// Returns the flag with the name of its value, or with its possible values.
fn flag_text(flag: &str, arg: &Arg) -> String {
    let takes_value = arg.get_num_args().is_none_or(|count| count.min_values() > 0);
    let values: Vec<String> =
        arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let name = arg.get_value_names().and_then(|names| names.first());
    match (takes_value, name) {
        (true, _) if !values.is_empty() => format!("--{flag} {}", values.join("\\|")),
        (true, Some(name)) => format!("--{flag} {name}"),
        _ => format!("--{flag}"),
    }
}

fn table() -> String {
    let mut table =
        String::from("| flag | variable | file key | default | meaning |\n|---|---|---|---|---|\n");
    let command = command();
    for (flag, arg) in flags(&command) {
        let code = |text: Option<String>| text.map_or(String::new(), |text| format!("`{text}`"));
        let mut meaning = meaning_of(arg);
        if let Some(range) = range_of(flag, arg) {
            write!(meaning, " ({range})").unwrap();
        }
        if let Some((_, link)) = LINKS.iter().find(|(name, _)| *name == flag) {
            write!(meaning, "; see {link}").unwrap();
        }
        writeln!(
            table,
            "| `{}` | {} | {} | {} | {meaning} |",
            flag_text(flag, arg),
            code(variable_of(flag, arg)),
            code(key_of(flag)),
            default_of(arg).unwrap_or_default(),
        )
        .unwrap();
    }
    table
}

#[test]
fn serving_page_has_the_current_settings() {
    assert_section_current("docs/SERVING.md", "settings", &table());
}

#[test]
fn every_flag_has_a_file_key() {
    let command = command();
    let keys: BTreeSet<String> =
        flags(&command).iter().filter_map(|(flag, _)| key_of(flag)).collect();
    let known: BTreeSet<String> =
        fields_of::<SettingsFile>().iter().map(|key| (*key).to_owned()).collect();
    assert_eq!(keys, known, "flags (left) and SettingsFile (right); see FLAG_ONLY");
}

#[test]
fn every_variable_is_named_after_its_flag() {
    for (flag, arg) in flags(&command()) {
        let expected = format!("TOLLGATE_{}", flag.to_uppercase().replace('-', "_"));
        assert_eq!(variable_of(flag, arg), Some(expected), "--{flag}");
    }
}

#[test]
fn links_and_exceptions_name_existing_flags() {
    let command = command();
    let known: BTreeSet<&str> = flags(&command).into_iter().map(|(flag, _)| flag).collect();
    let named = LINKS.iter().map(|(flag, _)| *flag).chain(COMPUTED);
    let named = named.chain(FLAG_ONLY.iter().map(|(flag, _)| *flag));
    for flag in named.chain(OTHER_VARIABLES.iter().map(|(flag, ..)| *flag)) {
        assert!(known.contains(flag), "--{flag} does not exist");
    }
}

/// Returns the values that apply without any flag, by flag.
fn actual_defaults() -> BTreeMap<&'static str, String> {
    let settings = resolve(&[]).unwrap();
    let (redis, auth) = (&settings.redis, &settings.forward_auth);
    let lower = |value: &dyn std::fmt::Debug| format!("{value:?}").to_lowercase();
    BTreeMap::from([
        ("http", settings.http.to_string()),
        ("grpc-headers", settings.grpc_headers.map_or("none", HeaderStyle::as_str).to_owned()),
        ("auth-headers", auth.header_styles.iter().map(|style| style.as_str()).collect()),
        ("auth-body", auth.body_style.as_str().to_owned()),
        ("redis-timeout-ms", redis.timeout.as_millis().to_string()),
        ("redis-prefix", redis.prefix.clone()),
        ("scripting", lower(&redis.scripting)),
        ("report-ms", redis.report.as_millis().to_string()),
        ("node-lifetime-ms", redis.node_lifetime.as_millis().to_string()),
        ("breaker-failures", redis.breaker_failures.to_string()),
        ("breaker-open-ms", redis.breaker_open.as_millis().to_string()),
        ("probe-ms", redis.probe.as_millis().to_string()),
        ("distributed", redis.distributed.as_str().to_owned()),
        ("expected-nodes", redis.expected_nodes.map_or(1, NonZeroU32::get).to_string()),
        ("max-keys", settings.max_keys.to_string()),
        ("at-cap", lower(&settings.at_cap)),
        ("max-connections", settings.max_connections.to_string()),
        ("drain-ms", settings.drain.as_millis().to_string()),
        ("log-format", lower(&crate::settings::args::LogArg::default())),
    ])
}

#[test]
fn help_shows_the_actual_defaults() {
    let command = command();
    let shown: BTreeMap<&str, String> = flags(&command)
        .into_iter()
        .filter(|(flag, _)| !COMPUTED.contains(flag))
        .filter_map(|(flag, arg)| Some((flag, default_of(arg)?.replace('`', ""))))
        .collect();
    assert_eq!(shown, actual_defaults(), "help (left) and Settings::resolve (right)");
}
