//! What the variables of OpenTelemetry ask for. No error shows a value: one may be a secret.

use std::time::Duration;

use hyper::Uri;

use crate::settings::{Environment, SettingsError};

const DISABLED: &str = "OTEL_SDK_DISABLED";
const EXPORTER: &str = "OTEL_TRACES_EXPORTER";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const TIMEOUTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];
const PROTOCOLS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const SAMPLER_ARG: &str = "OTEL_TRACES_SAMPLER_ARG";

/// Where a collector is by convention.
const USUAL: &str = "http://localhost:4318";
const PATH: &str = "/v1/traces";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const LONGEST_TIMEOUT_MS: u64 = 600_000;

/// Traces to one collector.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExportTarget {
    pub(super) url: Uri,
    pub(super) timeout: Duration,
    /// `host:port` of the URL.
    address: String,
}

impl ExportTarget {
    pub(super) fn address(&self) -> &str {
        &self.address
    }
}

/// Traces, if they are asked for.
pub(super) fn asked(environment: &Environment) -> Result<Option<ExportTarget>, SettingsError> {
    let is_disabled = environment.get(DISABLED).is_some_and(|is| is.eq_ignore_ascii_case("true"));
    if is_disabled {
        return Ok(None);
    }
    let Some((setting, url)) = endpoint(environment)? else { return Ok(None) };
    check_protocol(environment)?;
    check_sampler(environment)?;
    let (url, address) = checked(setting, &url)?;
    Ok(Some(ExportTarget { url, address, timeout: timeout(environment)? }))
}

/// Where to, and which variable says so.
fn endpoint(environment: &Environment) -> Result<Option<(&'static str, String)>, SettingsError> {
    let beneath = |url: &str| format!("{}{PATH}", url.trim_end_matches('/'));
    let own = environment.get(TRACES_ENDPOINT).map(|url| (TRACES_ENDPOINT, url.to_owned()));
    let shared = || environment.get(ENDPOINT).map(|url| (ENDPOINT, beneath(url)));
    let named = own.or_else(shared);
    let Some(exporters) = environment.get(EXPORTER) else { return Ok(named) };
    let mut exporters = exporters.split(',').map(|name| name.trim().to_ascii_lowercase());
    if exporters.clone().any(|name| name == "otlp") {
        return Ok(Some(named.unwrap_or_else(|| (ENDPOINT, beneath(USUAL)))));
    }
    if exporters.all(|name| name == "none") {
        return Ok(None);
    }
    Err(SettingsError::new(EXPORTER, "is neither otlp nor none"))
}

fn check_protocol(environment: &Environment) -> Result<(), SettingsError> {
    let said = PROTOCOLS.into_iter().find_map(|name| Some((name, environment.get(name)?)));
    match said {
        Some((name, protocol)) if !protocol.eq_ignore_ascii_case("http/protobuf") => {
            Err(SettingsError::new(name, "is not http/protobuf, the only one that is spoken"))
        }
        _ => Ok(()),
    }
}

/// The library takes a sampler that it does not know for one that takes all, and says nothing.
fn check_sampler(environment: &Environment) -> Result<(), SettingsError> {
    match environment.get(SAMPLER) {
        None
        | Some("always_on" | "always_off" | "parentbased_always_on" | "parentbased_always_off") => {
            Ok(())
        }
        Some("traceidratio" | "parentbased_traceidratio") => {
            let Some(ratio) = environment.get(SAMPLER_ARG) else { return Ok(()) };
            match ratio.parse::<f64>() {
                Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(()),
                _ => Err(SettingsError::new(SAMPLER_ARG, "is not a number from 0 to 1")),
            }
        }
        Some(_) => Err(SettingsError::new(SAMPLER, "is not a sampler that is known here")),
    }
}

/// A URL that can be posted to, and its `host:port`.
fn checked(setting: &str, url: &str) -> Result<(Uri, String), SettingsError> {
    let wrong = |reason: &str| SettingsError::new(setting, reason);
    let uri: Uri = url.trim().parse().map_err(|_| wrong("is not a URL"))?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => {
            return Err(wrong("needs TLS, which is not spoken here; a collector beside can"));
        }
        _ => return Err(wrong("does not begin with http://")),
    }
    let authority = uri.authority().ok_or_else(|| wrong("has no host"))?;
    if authority.as_str().contains('@') {
        return Err(wrong("names a user; what lets in belongs in OTEL_EXPORTER_OTLP_HEADERS"));
    }
    let is_bare = authority.as_str() == authority.host();
    let address = match (authority.port_u16(), is_bare) {
        (Some(port), _) => format!("{}:{port}", authority.host()),
        (None, true) => format!("{}:80", authority.host()),
        (None, false) => return Err(wrong("has no port that can be one")),
    };
    Ok((uri, address))
}

fn timeout(environment: &Environment) -> Result<Duration, SettingsError> {
    let said = TIMEOUTS.into_iter().find_map(|name| Some((name, environment.get(name)?)));
    let Some((name, text)) = said else { return Ok(DEFAULT_TIMEOUT) };
    match text.trim().parse() {
        Ok(millis @ 1..=LONGEST_TIMEOUT_MS) => Ok(Duration::from_millis(millis)),
        _ => Err(SettingsError::new(name, format!("must be from 1 to {LONGEST_TIMEOUT_MS}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url_of<const N: usize>(pairs: [(&str, &str); N]) -> Option<String> {
        asked(&Environment::from(pairs)).unwrap().map(|asked| asked.url.to_string())
    }

    #[test]
    fn nothing_is_asked_unless_something_asks() {
        assert_eq!(url_of([]), None);
        assert_eq!(url_of([("OTEL_SERVICE_NAME", "t"), (ENDPOINT, "")]), None);
        assert_eq!(url_of([(EXPORTER, "none"), (ENDPOINT, "http://c:1")]), None);
        assert_eq!(url_of([(DISABLED, "TRUE"), (ENDPOINT, "http://c:1")]), None);
        assert_eq!(url_of([(DISABLED, "true"), (ENDPOINT, "nonsense")]), None);
        let told = url_of([(DISABLED, "1"), (ENDPOINT, "http://c:1")]);
        assert!(told.is_some(), "only true is true, says the specification");
    }

    #[test]
    fn the_path_is_added_to_what_all_signals_share() {
        let usual = Some("http://localhost:4318/v1/traces".to_owned());
        assert_eq!(url_of([(EXPORTER, "otlp")]), usual);
        assert_eq!(url_of([(ENDPOINT, "http://localhost:4318/")]), usual);
        assert_eq!(url_of([(ENDPOINT, "http://c/a")]).as_deref(), Some("http://c/a/v1/traces"));
        let both = [(ENDPOINT, "http://c:1"), (TRACES_ENDPOINT, "http://[::1]:2/x")];
        assert_eq!(url_of(both).as_deref(), Some("http://[::1]:2/x"));
    }

    #[test]
    fn what_cannot_be_done_is_told_without_values() {
        for (name, value) in [
            (ENDPOINT, "https://canary:4318"),
            (ENDPOINT, "http://user:canary@c:1"),
            (ENDPOINT, "http://canary:99999"),
            (ENDPOINT, "canary"),
            (ENDPOINT, "http://can ary"),
            (TRACES_ENDPOINT, "grpc://canary"),
            (EXPORTER, "canary"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "canary"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "canary"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "0"),
            (SAMPLER, "canary"),
            (SAMPLER_ARG, "canary"),
            (SAMPLER_ARG, "1.5"),
            (SAMPLER_ARG, "NaN"),
        ] {
            let usual = [(ENDPOINT, "http://c:1"), (SAMPLER, "traceidratio")];
            let told = asked(&Environment::from([usual[0], usual[1], (name, value)]))
                .unwrap_err()
                .to_string();
            assert!(told.starts_with(name) && !told.contains("canary"), "{name}={value}: {told}");
        }
    }

    #[test]
    fn the_timeout_is_in_milliseconds() {
        let of = |pairs: [(&str, &str); 2]| asked(&Environment::from(pairs)).unwrap().unwrap();
        let own = of([(ENDPOINT, "http://c:1"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "250")]);
        assert_eq!(own.timeout, Duration::from_millis(250));
        let none = of([(ENDPOINT, "http://c:1"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "")]);
        assert_eq!((none.timeout, none.address()), (DEFAULT_TIMEOUT, "c:1"));
    }
}
