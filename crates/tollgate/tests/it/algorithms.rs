//! The table of algorithms and every place that depends on it. A new algorithm that is missing somewhere fails here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tollgate::algorithm::{CalendarUnit, Letter};
use tollgate::{
    Algorithm, Key, Limit, LimitField, LimitSpec, ManualClock, Override, OverrideLimit, Policy,
    Quota, Subject, Unit,
};
use tollgate_testkit::answer::Operation;
use tollgate_testkit::oracle::Oracle;
use tollgate_testkit::spec::{self, Align, Kind};

use crate::operations::apply;
use crate::snapshots::{saved, store};

/// Returns a specification with all fields of a letter.
fn spec_of(letter: Letter) -> LimitSpec {
    let mut spec = LimitSpec { algorithm: Some(letter.algorithm()), ..LimitSpec::default() };
    for field in letter.fields() {
        match field {
            LimitField::Count => spec.count = Some(9),
            LimitField::Window => spec.window = Some(Duration::from_secs(60)),
            LimitField::Burst => spec.burst = Some(20),
            LimitField::Align => spec.align = Some(CalendarUnit::Day),
            LimitField::Tz => spec.tz = Some("Europe/Zurich".to_owned()),
            LimitField::Ttl => spec.ttl = Some(Duration::from_secs(30)),
            LimitField::Unit | LimitField::Name => panic!("not among the fields of a letter"),
        }
    }
    spec
}

fn limit_of(letter: Letter) -> Limit {
    spec_of(letter).build().unwrap()
}

#[test]
fn specification_and_bytes_round_trip() {
    for letter in Letter::ALL {
        for name in [None, Some("named".to_owned())] {
            let spec = LimitSpec { name, ..spec_of(letter) };
            let limit = spec.build().unwrap();
            assert_eq!((limit.letter(), limit.spec()), (letter, spec), "{letter:?}");
            assert_eq!(limit.algorithm(), letter.algorithm());
            let identity = limit.identity();
            assert!(identity.starts_with(char::from(letter.byte())), "{identity}");
            assert_eq!(Limit::from_spec_bytes(&identity, &limit.spec_bytes()), Some(limit));
        }
    }
}

#[test]
fn specification_rejects_every_field_that_a_limit_does_not_have() {
    let fields = [LimitField::Window, LimitField::Burst, LimitField::Tz, LimitField::Ttl];
    for letter in Letter::ALL {
        for field in fields.into_iter().filter(|field| !letter.has(*field)) {
            let mut spec = spec_of(letter);
            match field {
                LimitField::Window => spec.window = Some(Duration::from_secs(7)),
                LimitField::Burst => spec.burst = Some(1),
                LimitField::Tz => spec.tz = Some("UTC".to_owned()),
                LimitField::Ttl => spec.ttl = Some(Duration::from_secs(7)),
                LimitField::Count | LimitField::Align | LimitField::Unit | LimitField::Name => {}
            }
            let error = spec.build().unwrap_err();
            assert_eq!(error.field(), Some(field), "{letter:?} {error}");
            assert_eq!(error.to_string(), format!("{} {}", field.as_str(), error.detail()));
        }
        for field in letter.fields() {
            let mut spec = spec_of(letter);
            match field {
                LimitField::Count => spec.count = None,
                LimitField::Window => spec.window = None,
                _ => continue,
            }
            assert_eq!(spec.build().unwrap_err().field(), Some(*field), "{letter:?}");
        }
    }
}

#[test]
fn a_unit_is_a_field_of_every_limit_that_counts_amounts() {
    for letter in Letter::ALL {
        let spec = LimitSpec { unit: Some(Unit::new("tokens").unwrap()), ..spec_of(letter) };
        let owner = match letter {
            Letter::Block => "a limit of 0",
            Letter::Concurrency => "concurrency",
            _ => {
                let limit = spec.build().unwrap();
                assert_eq!((limit.unit().as_str(), limit.spec()), ("tokens", spec));
                assert_eq!(limit.identity(), limit_of(letter).identity());
                continue;
            }
        };
        let error = spec.build().unwrap_err();
        assert_eq!(error.field(), Some(LimitField::Unit), "{letter:?}");
        assert_eq!(error.to_string(), format!("unit is not supported by {owner}"));
    }
    let spec = LimitSpec { count: Some(0), ..LimitSpec::rate(1, Duration::from_secs(60)) };
    let error = LimitSpec { unit: Some(Unit::requests()), ..spec }.build().unwrap_err();
    assert_eq!(error.to_string(), "unit is not supported by a limit of 0");
}

#[test]
fn a_count_of_zero_is_a_block_and_never_a_stored_limit_of_another_letter() {
    let block = LimitSpec { count: Some(0), ..LimitSpec::default() };
    assert_eq!(block.build(), Ok(Limit::block()));
    let bucket = Limit::token_bucket(Quota::per_minute(1)).unwrap();
    let mut bytes = bucket.spec_bytes();
    bytes[1..9].fill(0);
    assert_eq!(Limit::from_spec_bytes(&bucket.identity(), &bytes), None);
}

#[test]
fn snapshots_keep_the_state_of_every_algorithm() {
    for letter in Letter::ALL {
        let (clock, limit, subject) = (ManualClock::new(), limit_of(letter), Subject::of(["c"]));
        let original = store(&clock);
        let key = Key::new(&subject, &limit);
        apply(&original, key, Operation::Take { cost: 2 });
        let restored = store(&clock);
        restored.restore(saved(&original).as_slice()).unwrap();
        assert_eq!(restored.stats(&key), original.stats(&key), "{letter:?}");
        let expected = if letter == Letter::Block { 0 } else { 2 };
        assert_eq!(restored.stats(&key).count(), expected, "{letter:?}");
    }
}

#[test]
fn policies_can_have_every_algorithm() {
    for letter in Letter::ALL {
        let name = letter.algorithm().as_str();
        let limit = if letter.has(LimitField::Window) {
            format!("{{ rate: 9/min, algorithm: {name} }}")
        } else if letter.has(LimitField::Align) {
            format!("{{ rate: 9/d, align: day, algorithm: {name} }}")
        } else if letter.has(LimitField::Ttl) {
            "{ concurrency: 9, ttl: 30s }".to_owned()
        } else {
            "0".to_owned()
        };
        let text = format!("version: 1\nrules:\n  - {{ name: api, limits: [{limit}] }}\n");
        let policy = Policy::from_yaml("policy.yaml", &text, Limit::block()).unwrap();
        assert_eq!(policy.rules()[0].limits()[0].letter(), letter, "{text}");
    }
}

#[test]
fn policy_schema_names_the_algorithms_of_rates() {
    let schema = fs::read_to_string(root().join("crates/tollgate/policy.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let described = schema["$defs"]["algorithm"]["enum"].as_array().unwrap();
    let described: BTreeSet<&str> = described.iter().map(|name| name.as_str().unwrap()).collect();
    let rates = Algorithm::ALL.into_iter().filter(|one| one.accepts(LimitField::Window));
    assert_eq!(described, rates.map(Algorithm::as_str).collect());
}

#[test]
fn overrides_can_have_every_algorithm() {
    for name in Algorithm::NAMES {
        let algorithm = Algorithm::from_name(name).unwrap();
        let has_window = algorithm.accepts(LimitField::Window);
        let spec = LimitSpec {
            algorithm: Some(algorithm),
            count: Some(9),
            window: has_window.then_some(Duration::from_secs(60)),
            ..LimitSpec::default()
        };
        let limit = OverrideLimit::from_spec(&spec).unwrap();
        let stored = Override::new(vec![limit]).unwrap();
        assert_eq!(Override::from_text(&stored.to_text()).unwrap(), stored, "{name}");
        assert!(stored.to_text().contains(name), "{name}");
    }
}

#[test]
fn oracle_knows_every_algorithm() {
    let mut letters: Vec<Letter> = vec![Letter::Block];
    for kind in Kind::ALL {
        let spec = match kind {
            Kind::CalendarWindow => spec::LimitSpec::calendar(9, Align::Day, "UTC"),
            kind => spec::LimitSpec::new(kind, 9, 60_000_000),
        };
        letters.push(spec.build().unwrap().letter());
        let answer = Oracle::new().apply(&spec, 1, Operation::Take { cost: 2 });
        assert_eq!((answer.count, answer.remaining), (2, 7), "{kind:?}");
    }
    assert_eq!(letters, Letter::ALL);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// An algorithm that no code treats specially, so that the files that name it are those that a new one must change.
const TYPICAL: [&str; 2] = ["sliding_counter", "SlidingCounter"];

/// Files that name the algorithm only in the text of an error.
const ONLY_IN_TEXT: [&str; 1] = ["crates/tollgate/src/algorithm/sliding_window.rs"];

#[test]
fn contributing_lists_the_files_that_an_algorithm_touches() {
    let guide = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let section = guide.split("## Adding an algorithm").nth(1).unwrap();
    let product = section.split("Tests and documents").next().unwrap();
    let listed: BTreeSet<String> = product
        .lines()
        .filter_map(|line| line.strip_prefix("- `")?.split('`').next())
        .map(|path| path.replace("NAME", TYPICAL[0]))
        .collect();
    let mut named = BTreeSet::new();
    for name in ["tollgate", "tollgate-redis", "tollgate-server", "tollgate-tower"] {
        for folder in ["src", "lua", "assets", "policy.schema.json"] {
            add_naming_files(&root().join("crates").join(name).join(folder), &mut named);
        }
    }
    named.retain(|path| !ONLY_IN_TEXT.contains(&path.as_str()));
    assert_eq!(listed, named);
    assert!(listed.len() <= 9, "{listed:?}");
}

/// Adds the product files at or below `path` that name the typical algorithm in code.
fn add_naming_files(path: &Path, named: &mut BTreeSet<String>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            add_naming_files(&entry.unwrap().path(), named);
        }
        return;
    }
    let is_test = path.components().any(|part| part.as_os_str() == "tests")
        || path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
    let is_document = path.extension().is_some_and(|extension| extension == "md");
    let Ok(text) = fs::read_to_string(path) else { return };
    let product = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let is_comment = |line: &&str| line.trim_start().starts_with(['/', '-']);
    let mut code = product.lines().filter(|line| !is_comment(line));
    if !is_test && !is_document && code.any(|line| TYPICAL.iter().any(|name| line.contains(name))) {
        let path = path.strip_prefix(root()).unwrap();
        named.insert(path.to_string_lossy().replace('\\', "/"));
    }
}
