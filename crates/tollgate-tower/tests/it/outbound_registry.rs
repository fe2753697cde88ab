//! The registry of limiters.

use std::sync::Arc;
use std::time::Duration;

use tollgate::policy::{AcquireMode, NamedLimits};
use tollgate::{MemoryStore, PolicyErrorKind};
use tollgate_tower::outbound::{AcquireError, Limiters};

use crate::outbound_fixture::per_second;

const TEXT: &str = "\
version: 1
limiters:
  igdb: { key: \"igdb:api\", limits: [4/s], mode: blocking, longest_wait: 30s }
  thumbnails: { limits: [10/s, 1000/h], mode: immediate }
  musicbrainz: 1/s
";

#[tokio::test]
async fn builds_limiters_from_yaml() {
    let limiters = Limiters::from_yaml(Arc::new(MemoryStore::new()), "p.yaml", TEXT).unwrap();
    let names: Vec<_> = limiters.iter().map(|limiter| limiter.name().to_owned()).collect();
    assert_eq!(names, ["igdb", "musicbrainz", "thumbnails"]);
    let igdb = limiters.get("igdb").unwrap();
    assert_eq!(igdb.key(), "igdb:api");
    let longest_wait = Some(Duration::from_secs(30));
    assert_eq!(igdb.limits().mode(), AcquireMode::Blocking { longest_wait });
    assert_eq!(igdb.limits().limits(), NamedLimits::igdb().limits());
    let thumbnails = limiters.get("thumbnails").unwrap();
    assert_eq!((thumbnails.key(), thumbnails.limits().limits().len()), ("thumbnails", 2));
    assert_eq!(thumbnails.limits().mode(), AcquireMode::Immediate);
    assert_eq!(limiters.get("musicbrainz").unwrap().limits().mode(), AcquireMode::default());
    igdb.acquire().await.unwrap();
    let counts = limiters.counts();
    assert_eq!(counts.iter().map(|(_, counts)| counts.acquired).collect::<Vec<_>>(), [1, 0, 0]);
}

#[test]
fn yaml_errors_name_line_and_field() {
    let store = || Arc::new(MemoryStore::new());
    for (text, kind, line, message) in [
        (
            TEXT.replace("longest_wait", "longestwait"),
            PolicyErrorKind::UnknownField,
            3,
            "p.yaml:3:59: limiters.igdb.longestwait: unknown field, did you mean \"longest_wait\"?",
        ),
        (
            TEXT.replace("1/s\n", "1/sec\n"),
            PolicyErrorKind::Limit,
            5,
            "p.yaml:5:16: limiters.musicbrainz: not a valid rate, did you mean 1/s?",
        ),
        (
            format!("{TEXT}  igdb: 5/s\n"),
            PolicyErrorKind::Duplicate,
            6,
            "p.yaml:6:3: limiters.igdb: duplicate field; remove one of the two",
        ),
    ] {
        let error = Limiters::from_yaml(store(), "p.yaml", &text).unwrap_err();
        assert_eq!((error.kind(), error.line()), (kind, line), "{error}");
        assert_eq!(error.to_string(), message);
    }
}

#[tokio::test]
async fn later_limiter_replaces_preset_of_same_name() {
    let store = Arc::new(MemoryStore::new());
    let replacement = per_second(8).named("igdb").unwrap();
    let limiters = Limiters::builder(store).presets().limiter(replacement).build();
    let numbers: Vec<_> = limiters
        .iter()
        .map(|limiter| (limiter.name(), limiter.limits().limits()[0].count()))
        .collect();
    assert_eq!(numbers, [("igdb", 8), ("musicbrainz", 1), ("spotify", 180), ("tmdb", 40)]);
    // All limiters returned for one name are the same limiter.
    limiters.get("igdb").unwrap().acquire_many(8).await.unwrap();
    assert!(limiters.get("igdb").unwrap().try_acquire().await.is_err());
    let counts = limiters.require("igdb").unwrap().counts();
    assert_eq!((counts.acquired, counts.refused), (1, 1));
}

#[test]
fn unknown_name_error_lists_known_names() {
    let limiters = Limiters::builder(Arc::new(MemoryStore::new())).presets().build();
    let error = AcquireError::from(limiters.require("imdb").unwrap_err());
    let message = "unknown limiter 'imdb'; known limiters: igdb, musicbrainz, spotify, tmdb";
    assert_eq!((error.to_string().as_str(), error.is_transient()), (message, false));
    let none = Limiters::builder(Arc::new(MemoryStore::new())).build();
    let error = none.require("imdb").unwrap_err();
    assert_eq!(error.to_string(), "unknown limiter 'imdb'; known limiters: none");
}
