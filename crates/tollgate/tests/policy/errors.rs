//! Whatever is wrong with a file, the error says where and what.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use tollgate::policy::PolicyErrorKind;
use tollgate::{Limit, Policy};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/policy/errors")
}

fn bad_files() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().unwrap_or_default() == "yaml").collect();
    files.sort();
    files
}

#[test]
fn errors_are_as_recorded() {
    let update = std::env::var_os("UPDATE_SNAPSHOTS").is_some();
    let mut differing = Vec::new();
    for file in bad_files() {
        let name = file.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let Err(error) = Policy::from_yaml(name, &text, Limit::block()) else {
            panic!("{name} is no error");
        };
        assert!(error.line() >= 1 && error.column() >= 1 && error.file() == name);
        let said = format!("{error}\n");
        let recorded = file.with_extension("txt");
        if update {
            fs::write(&recorded, &said).unwrap();
        } else if fs::read_to_string(&recorded).unwrap_or_default() != said {
            differing.push(said);
        }
    }
    assert!(
        differing.is_empty(),
        "not as recorded (UPDATE_SNAPSHOTS=1 records):\n{}",
        differing.join("\n")
    );
}

#[test]
fn a_key_in_clear_is_never_repeated() {
    for file in bad_files() {
        let text = fs::read_to_string(&file).unwrap();
        let error = Policy::from_yaml("p.yaml", &text, Limit::block()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[test]
fn no_error_can_move_a_cursor() {
    for file in bad_files() {
        let text = fs::read_to_string(&file).unwrap();
        let error = Policy::from_yaml("p.yaml", &text, Limit::block()).unwrap_err().to_string();
        assert!(!error.chars().any(|char| char.is_control() && char != '\n'), "{error:?}");
    }
}

#[test]
fn large_files_are_refused_without_being_read() {
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
fn only_so_many_flaws_are_told() {
    let text = format!("version: 1\nrules:\n{}", "- {}\n".repeat(1000));
    let told = Policy::from_yaml("p.yaml", &text, Limit::block()).unwrap_err().to_string();
    assert_eq!(told.lines().count(), 11);
    assert!(told.ends_with("p.yaml: and 990 more"), "{told}");
}

/// Characters that mean something to YAML or to us.
const TELLING: &str = " \n\t-:,[]{}'\"#&*!|>%@`?/\\0a\u{0}\u{feff}é\u{1F600}";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// A good file with some characters replaced is a policy or an error at a place within it.
    #[test]
    fn no_text_is_too_strange(
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::sample::select(TELLING.chars().collect::<Vec<_>>())),
            1..8,
        ),
    ) {
        let mut text: Vec<char> = include_str!("../../../../examples/policy.yaml").chars().collect();
        for (place, char) in edits {
            *place.get_mut(&mut text) = char;
        }
        let text: String = text.into_iter().collect();
        if let Err(error) = Policy::from_yaml("p.yaml", &text, Limit::block()) {
            // A file that ends too early may be wrong right behind its last line.
            prop_assert!((1..=text.lines().count() + 1).contains(&error.line()), "{}", error);
            let is_safe = !error.to_string().contains(char::from(0));
            prop_assert!(is_safe);
        }
    }
}
