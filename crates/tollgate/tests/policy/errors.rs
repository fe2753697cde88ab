//! Error messages of invalid policy files: position, field and reason.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use tollgate::policy::PolicyErrorKind;
use tollgate::{Limit, Policy};

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/policy/errors")
}

pub(crate) fn invalid_files() -> Vec<PathBuf> {
    let entries = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().unwrap_or_default() == "yaml").collect();
    files.sort();
    files
}

#[test]
fn errors_match_the_snapshots() {
    let update = std::env::var_os("UPDATE_SNAPSHOTS").is_some();
    let mut differing = Vec::new();
    for file in invalid_files() {
        let name = file.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let Err(error) = Policy::from_yaml(name, &text, Limit::block()) else {
            panic!("{name} was accepted");
        };
        assert!(error.line() >= 1 && error.column() >= 1 && error.file() == name);
        let message = format!("{error}\n");
        let snapshot = file.with_extension("txt");
        if update {
            fs::write(&snapshot, &message).unwrap();
        } else if fs::read_to_string(&snapshot).unwrap_or_default() != message {
            differing.push(message);
        }
    }
    assert!(
        differing.is_empty(),
        "messages differ from the snapshots (UPDATE_SNAPSHOTS=1 updates them):\n{}",
        differing.join("\n")
    );
}

#[test]
fn plaintext_keys_never_appear_in_errors() {
    for file in invalid_files() {
        let text = fs::read_to_string(&file).unwrap();
        let error = Policy::from_yaml("p.yaml", &text, Limit::block()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[test]
fn errors_contain_no_control_characters() {
    for file in invalid_files() {
        let text = fs::read_to_string(&file).unwrap();
        let error = Policy::from_yaml("p.yaml", &text, Limit::block()).unwrap_err().to_string();
        assert!(!error.chars().any(|char| char.is_control() && char != '\n'), "{error:?}");
    }
}

#[test]
fn rejects_files_that_exceed_a_size_limit() {
    let long = "#".repeat((4 << 20) + 1);
    let many_rules = format!("version: 1\nrules:\n{}", "- {}\n".repeat(20_001));
    let many_values = format!("version: 1\nrules: [{}]", "0,".repeat(1_000_001));
    let many_fields: String = (0..1001).map(|n| format!("f{n}: 1\n")).collect();
    for text in [long, many_rules, many_values, many_fields] {
        let error = Policy::from_yaml("p.yaml", &text, Limit::block()).unwrap_err();
        assert_eq!(error.kind(), PolicyErrorKind::TooLarge, "{error}");
    }
}

#[test]
fn every_error_of_a_file_is_reported() {
    let text = fs::read_to_string(directory().join("many-in-one-rule.yaml")).unwrap();
    let error = Policy::from_yaml("p.yaml", &text, Limit::block()).unwrap_err();
    let fields: Vec<_> = error.errors().map(|error| (error.line(), error.field())).collect();
    assert_eq!(
        fields,
        [
            (2, "tiers.free[0]"),
            (2, "tiers.gold[0]"),
            (4, "facts.team[0].header"),
            (5, "facts.path"),
            (6, "defaults.limit"),
            (6, "defaults.per[0]"),
            (6, "defaults.mising"),
            (8, "rules[0].name"),
            (9, "rules[0].match.path[0]"),
            (9, "rules[0].match.path[1]"),
            (9, "rules[0].match.methods"),
            (9, "rules[0].match.ip"),
            (11, "rules[0].limits[0]"),
            (11, "rules[0].limits[1].rate"),
            (11, "rules[0].limits[1].burst"),
            (11, "rules[0].limits[1].ttl"),
            (11, "rules[0].limits[2].count"),
            (12, "rules[0].mode"),
            (13, "rules[0].cost"),
            (14, "rules[0].mode"),
            (16, "rules[1].limits.bursts"),
            (17, "rules[1].next.limit"),
            (19, "limiters.x y"),
            (19, "limiters.x y.limits"),
            (19, "limiters.x y.longest_wait"),
        ]
    );
}

#[test]
fn message_lists_at_most_ten_errors() {
    let text = format!("version: 1\nrules:\n{}", "- {}\n".repeat(1000));
    let message = Policy::from_yaml("p.yaml", &text, Limit::block()).unwrap_err().to_string();
    assert_eq!(message.lines().count(), 11);
    assert!(message.ends_with("p.yaml: and 1990 more errors"), "{message}");
}

/// Characters with a special meaning in YAML or in policies.
const SPECIAL: &str = " \n\t-:,[]{}'\"#&*!|>%@`?/\\0a\u{0}\u{feff}é\u{1F600}";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// A valid file with some characters replaced is a policy, or an error at a position within it.
    #[test]
    fn corrupted_files_never_panic(
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::sample::select(SPECIAL.chars().collect::<Vec<_>>())),
            1..8,
        ),
    ) {
        let mut text: Vec<char> = include_str!("../../../../examples/policy.yaml").chars().collect();
        for (position, char) in edits {
            *position.get_mut(&mut text) = char;
        }
        let text: String = text.into_iter().collect();
        if let Err(error) = Policy::from_yaml("p.yaml", &text, Limit::block()) {
            // The error of a truncated file can be on the line after the last one.
            prop_assert!((1..=text.lines().count() + 1).contains(&error.line()), "{}", error);
            let is_safe = !error.to_string().contains(char::from(0));
            prop_assert!(is_safe);
        }
    }
}
