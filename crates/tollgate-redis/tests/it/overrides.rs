//! Exceptions for clients: stored once, in force everywhere, and never without a trace.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tollgate::{Override, Overrides, StoreErrorKind, Subject, Timestamp};
use tollgate_redis::{AuditEntry, Directory, OverrideFollower, RedisStore, StoredOverrides};
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::{MAX_WAIT, eventually};

use crate::fixture::{block_on, own, patient, prefix, shared};

fn store() -> RedisStore {
    patient(shared(Flavor::Redis)).prefix(prefix()).unwrap().build()
}

fn put(directory: &Directory, client: &Subject, own: &Override, who: &str) -> Option<String> {
    block_on(directory.put_override(client, own, who)).unwrap()
}

fn clients(overrides: &Overrides) -> Vec<String> {
    overrides.after("").map(|(client, _)| client.to_owned()).collect()
}

fn all(directory: &Directory) -> StoredOverrides {
    block_on(directory.overrides()).unwrap()
}

fn until(micros: u64) -> Override {
    own(1).valid(Timestamp::EPOCH, Some(Timestamp::from_micros(micros)))
}

#[test]
fn an_override_is_kept_until_it_is_replaced_or_removed() {
    let directory = store().directory();
    let [client, other] = [Subject::of(["c 1"]), Subject::in_tenant("acme", ["c 1"])];
    let get = |client: &Subject| block_on(directory.get_override(client)).unwrap();
    assert_eq!(get(&client), None);
    let (one, two) = (own(1).recorded_by("kim", "busy"), until(1 << 52).for_rule("api"));
    assert_eq!(put(&directory, &client, &one, "kim"), None);
    assert_eq!(get(&client), Some(one.clone()));
    assert_eq!(put(&directory, &client, &two, "lee"), Some(one.to_text()));
    assert_eq!(get(&client), Some(two.clone()));
    assert_eq!(get(&other), None, "of another tenant");
    let remove = || block_on(directory.remove_override(&client, "kim")).unwrap();
    assert_eq!(remove(), Some(two.to_text()));
    assert_eq!((remove(), get(&client)), (None, None));
}

#[test]
fn an_override_that_has_ended_was_never_there() {
    let directory = store().directory();
    let [c, d] = [Subject::of(["c"]), Subject::of(["d"])];
    put(&directory, &c, &until(1), "");
    assert!(all(&directory).overrides.is_empty());
    assert_eq!(block_on(directory.get_override(&c)).unwrap(), None);
    put(&directory, &c, &until(1), "");
    assert_eq!(put(&directory, &c, &own(2), ""), None);
    assert_eq!(clients(&all(&directory).overrides), [":c"]);
    put(&directory, &d, &until(1), "");
    assert_eq!(block_on(directory.remove_override(&d, "")).unwrap(), None);
}

#[test]
fn every_override_is_listed() {
    let directory = store().directory();
    let mut names: Vec<Subject> = (0..1000).map(|nth| Subject::of([format!("c {nth}")])).collect();
    names.sort();
    for client in &names {
        put(&directory, client, &own(1), "");
    }
    let listed = clients(&all(&directory).overrides);
    assert!(listed.iter().map(String::as_str).eq(names.iter().map(Subject::as_str)));
}

#[test]
fn every_change_is_audited_from_old_to_new_newest_first() {
    let directory = store().directory();
    let client = Subject::of(["c"]);
    put(&directory, &client, &own(1), "one");
    put(&directory, &client, &own(2), "two");
    block_on(directory.remove_override(&client, "three")).unwrap();
    block_on(directory.remove_override(&client, "nothing")).unwrap();
    block_on(directory.record("four")).unwrap();
    let page = |before: Option<&str>, most| block_on(directory.audit(before, most)).unwrap();
    let told = |entry: &AuditEntry| (entry.entry.clone(), entry.old.clone(), entry.new.clone());
    let newest = page(None, 2);
    let older = page(Some(&newest[1].id), 9);
    let all: Vec<_> = newest.iter().chain(&older).map(told).collect();
    let expected = [
        ("four", None, None),
        ("three", Some(own(2)), None),
        ("two", Some(own(1)), Some(own(2))),
        ("one", None, Some(own(1))),
    ];
    assert_eq!(all, expected.map(|(entry, old, new)| (entry.to_owned(), old, new)));
    assert!(newest[0].at.as_micros() > 1_700_000_000_000_000, "by the server's clock");
    for foreign in ["", "+", "1-2-3", "x-1"] {
        let error = block_on(directory.audit(Some(foreign), 1)).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Cursor, "{foreign}");
    }
}

#[test]
fn the_audit_does_not_grow_for_good() {
    let server = Server::start(Flavor::Redis);
    let directory = patient(&server).build().directory();
    block_on(async {
        for _ in 0..10_300 {
            directory.record("again").await.unwrap();
        }
    });
    let length = server.raw().call(&["XLEN", "rl:audit{rl:overrides}"]).int();
    assert!((10_000..10_200).contains(&length), "{length}");
}

/// What a follower is told, and the follower itself.
fn followed(store: &RedisStore) -> (Receiver<StoredOverrides>, OverrideFollower) {
    let (sender, receiver) = channel();
    let obey = move |stored: &StoredOverrides| sender.send(stored.clone()).unwrap_or_default();
    let following = block_on(store.directory().follow_overrides(obey)).unwrap();
    (receiver, following)
}

/// Waits until a follower has been told of just these clients.
fn hears(receiver: &Receiver<StoredOverrides>, wanted: &[&str]) -> StoredOverrides {
    let end = Instant::now() + MAX_WAIT;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let stored = receiver.recv_timeout(left).expect("it is told in time");
        if clients(&stored.overrides) == wanted {
            return stored;
        }
    }
}

#[test]
fn what_one_stores_another_hears_of() {
    let prefix = prefix();
    let [one, other] =
        [(); 2].map(|()| patient(shared(Flavor::Redis)).prefix(&*prefix).unwrap().build());
    let directory = one.directory();
    let [c, d] = [Subject::of(["c"]), Subject::of(["d"])];
    put(&directory, &c, &own(1), "");
    let (heard, _following) = followed(&other);
    hears(&heard, &[":c"]);
    put(&directory, &d, &own(2), "");
    let stored = hears(&heard, &[":c", ":d"]);
    assert_eq!(stored.overrides.get(&d).map(|stored| (**stored).clone()), Some(own(2)));
    block_on(directory.remove_override(&c, "")).unwrap();
    hears(&heard, &[":d"]);
}

#[test]
fn an_override_ends_by_itself_everywhere() {
    let store = store();
    let (heard, _following) = followed(&store);
    let micros = |time: std::time::SystemTime| {
        u64::try_from(time.duration_since(std::time::UNIX_EPOCH).unwrap().as_micros()).unwrap()
    };
    let end = std::time::SystemTime::now() + Duration::from_secs(5);
    put(&store.directory(), &Subject::of(["c"]), &until(micros(end)), "");
    hears(&heard, &[":c"]);
    hears(&heard, &[]);
    assert!(std::time::SystemTime::now() >= end, "it lasts as long as it was to");
}

#[test]
fn what_was_missed_is_caught_up_with() {
    let server = Server::start(Flavor::Redis);
    let (heard, _following) = followed(&patient(&server).build());
    let directory = patient(&server).build().directory();
    put(&directory, &Subject::of(["c"]), &own(1), "");
    hears(&heard, &[":c"]);
    // Stored where nobody could hear of it.
    let text = [b"\0\0\0\0\0\0\0".to_vec(), own(2).to_text().into_bytes()].concat();
    server.raw().call(&[b"HSET", &b"rl:overrides"[..], b":d", &text]);
    server.raw().call(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    hears(&heard, &[":c", ":d"]);
}

#[test]
fn nothing_is_too_long_to_be_listed() {
    let directory = store().directory();
    let hostile = "\u{1}".repeat(1000);
    for nth in 0..300 {
        let client = Subject::of([format!("{nth}{}", "ä".repeat(500))]);
        put(&directory, &client, &own(nth).recorded_by("a", hostile.clone()), &hostile);
    }
    assert_eq!(all(&directory).overrides.len(), 300);
    assert_eq!(block_on(directory.audit(None, 1000)).unwrap().len(), 300);
    assert_eq!(block_on(directory.audit(None, 120)).unwrap().len(), 120);
}

#[test]
fn who_may_not_listen_looks() {
    let server = Server::start(Flavor::Redis);
    let rights = ["ACL", "SETUSER", "mute", "on", ">secret", "~*", "&*", "+@all", "-subscribe"];
    assert!(!server.raw().call(&rights).is_error());
    let mute = RedisStore::builder(server.url_with("mute:secret@", 0).parse().unwrap());
    let mute = mute.timeout(Duration::from_secs(60)).build();
    let (heard, following) = followed(&mute);
    let directory = patient(&server).build().directory();
    put(&directory, &Subject::of(["c"]), &own(1), "");
    hears(&heard, &[":c"]);
    block_on(directory.remove_override(&Subject::of(["c"]), "")).unwrap();
    hears(&heard, &[]);
    assert_eq!(following.last_error(), None);
    server.kill();
    eventually("it is told", || following.last_error().is_some());
}

#[test]
fn what_cannot_be_read_is_told_and_can_be_removed() {
    let server = Server::start(Flavor::Redis);
    let later = b"\0\0\0\0\0\0\0{\"version\":2}";
    server.raw().call(&[b"HSET", &b"rl:overrides"[..], b":c", later]);
    let store = patient(&server).build();
    let (directory, c) = (store.directory(), Subject::of(["c"]));
    assert_eq!(all(&directory).unreadable, [":c"]);
    let error = block_on(directory.get_override(&c)).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Incompatible);
    let (heard, following) = followed(&store);
    block_on(directory.remove_override(&c, "")).unwrap();
    block_on(following.refresh(&c)).unwrap();
    let told = |stored: StoredOverrides| stored.unreadable.is_empty();
    eventually("it is told that none is unreadable", || heard.try_iter().any(told));
}
