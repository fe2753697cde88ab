//! Overrides: stored once, applied on all nodes, every change audited.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tollgate::{Override, Overrides, StoreErrorKind, Subject, Timestamp};
use tollgate_redis::{AuditEntry, Directory, OverrideFollower, RedisStore, StoredOverrides};
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::{MAX_WAIT, eventually};

use crate::fixture::{block_on, builder, override_of, prefix, shared};

fn store() -> RedisStore {
    builder(shared(Flavor::Redis)).prefix(prefix()).unwrap().build()
}

fn put(
    directory: &Directory,
    client: &Subject,
    new_override: &Override,
    entry: &str,
) -> Option<String> {
    block_on(directory.put_override(client, new_override, entry)).unwrap()
}

fn clients(overrides: &Overrides) -> Vec<String> {
    overrides.after("").map(|(client, _)| client.to_owned()).collect()
}

fn stored_overrides(directory: &Directory) -> StoredOverrides {
    block_on(directory.overrides()).unwrap()
}

fn expiring_at(micros: u64) -> Override {
    override_of(1).valid(Timestamp::EPOCH, Some(Timestamp::from_micros(micros)))
}

#[test]
fn override_is_stored_until_replaced_or_removed() {
    let directory = store().directory();
    let [client, other] = [Subject::of(["c 1"]), Subject::in_tenant("acme", ["c 1"])];
    let get = |client: &Subject| block_on(directory.get_overrides(client)).unwrap();
    assert_eq!(get(&client), []);
    let of_api = |count| override_of(count).for_rule("api").recorded_by("kim", "busy");
    let two = expiring_at(1 << 52).for_rule("api");
    assert_eq!(put(&directory, &client, &of_api(1), "kim"), None);
    assert_eq!(get(&client), [of_api(1)]);
    assert_eq!(put(&directory, &client, &two, "lee"), Some(of_api(1).to_text()));
    assert_eq!(get(&client), std::slice::from_ref(&two));
    assert_eq!(get(&other), [], "of another tenant");
    let remove = || block_on(directory.remove_overrides(&client, None, "kim")).unwrap();
    assert_eq!(remove(), [two.to_text()]);
    assert_eq!((remove(), get(&client)), (Vec::new(), Vec::new()));
}

#[test]
fn each_rule_has_its_own_override() {
    let directory = store().directory();
    let client = Subject::of(["c"]);
    let [api, search, without_rule] = [
        override_of(1).for_rule("api"),
        expiring_at(1 << 52).for_rule("search").only(),
        override_of(3),
    ];
    let new = [api.clone(), search.clone()];
    let before = block_on(directory.put_overrides(&client, &new, "both")).unwrap();
    assert_eq!(before, [None, None]);
    put(&directory, &client, &without_rule, "");
    let get = || block_on(directory.get_overrides(&client)).unwrap();
    assert_eq!(get(), [api.clone(), search.clone(), without_rule.clone()]);
    let listed = stored_overrides(&directory);
    assert_eq!((listed.overrides.len(), listed.unreadable.len()), (3, 0));
    let remove = |rule| block_on(directory.remove_overrides(&client, rule, "")).unwrap();
    assert_eq!(remove(Some("other")), [""; 0]);
    assert_eq!(remove(Some("")), [""; 0], "an empty name is not all rules");
    assert_eq!(remove(Some("search")), [search.to_text()]);
    assert_eq!(get(), [api.clone(), without_rule.clone()]);
    // An expired override goes without the others.
    put(&directory, &client, &expiring_at(1).for_rule("search"), "");
    assert_eq!(stored_overrides(&directory).overrides.len(), 2);
    assert_eq!(get().len(), 2);
    assert_eq!(remove(None).len(), 2);
    assert!(stored_overrides(&directory).overrides.is_empty());
    assert_eq!(block_on(directory.audit(None, 100)).unwrap().len(), 7, "one entry per override");
}

#[test]
fn overrides_of_two_rules_can_be_set_at_the_same_time() {
    let prefix = prefix();
    let set = |rule: &'static str| {
        let prefix = prefix.clone();
        move || {
            let store = builder(shared(Flavor::Redis)).prefix(&*prefix).unwrap().build();
            let directory = store.directory();
            for count in 1..=50 {
                put(&directory, &Subject::of(["c"]), &override_of(count).for_rule(rule), "");
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(set("api"));
        scope.spawn(set("search"));
    });
    let store = builder(shared(Flavor::Redis)).prefix(&*prefix).unwrap().build();
    let mut stored = block_on(store.directory().get_overrides(&Subject::of(["c"]))).unwrap();
    stored.sort_by(|one, other| one.rule.cmp(&other.rule));
    assert_eq!(stored, ["api", "search"].map(|rule| override_of(50).for_rule(rule)));
}

#[test]
fn record_of_an_earlier_version_stays_beside_new_overrides() {
    let server = Server::start(Flavor::Redis);
    let text = r#"{"version":1,"limits":[{"limit":2,"window_us":60000000}],"reason":"","author":"","set_at_us":0}"#;
    let value = [&b"\0\0\0\0\0\0\0"[..], text.as_bytes()].concat();
    server.raw().call(&[b"HSET", &b"rl:overrides"[..], b":c", &value]);
    let directory = builder(&server).build().directory();
    let client = Subject::of(["c"]);
    assert_eq!(block_on(directory.get_overrides(&client)).unwrap(), [override_of(2)]);
    put(&directory, &client, &override_of(9).for_rule("api"), "");
    let both = [override_of(2), override_of(9).for_rule("api")];
    assert_eq!(block_on(directory.get_overrides(&client)).unwrap(), both);
    block_on(directory.remove_overrides(&client, Some("api"), "")).unwrap();
    let stored = server.raw().call(&["HGET", "rl:overrides", ":c"]);
    assert_eq!(stored.bytes(), value, "one override has the format of earlier versions");
}

#[test]
fn expired_override_is_absent() {
    let directory = store().directory();
    let [c, d] = [Subject::of(["c"]), Subject::of(["d"])];
    put(&directory, &c, &expiring_at(1), "");
    assert!(stored_overrides(&directory).overrides.is_empty());
    assert_eq!(block_on(directory.get_overrides(&c)).unwrap(), []);
    put(&directory, &c, &expiring_at(1), "");
    assert_eq!(put(&directory, &c, &override_of(2), ""), None);
    assert_eq!(clients(&stored_overrides(&directory).overrides), [":c"]);
    put(&directory, &d, &expiring_at(1), "");
    assert_eq!(block_on(directory.remove_overrides(&d, None, "")).unwrap(), [""; 0]);
}

#[test]
fn every_override_is_listed() {
    let directory = store().directory();
    let mut names: Vec<Subject> = (0..1000).map(|nth| Subject::of([format!("c {nth}")])).collect();
    names.sort();
    for client in &names {
        put(&directory, client, &override_of(1), "");
    }
    let listed = clients(&stored_overrides(&directory).overrides);
    assert!(listed.iter().map(String::as_str).eq(names.iter().map(Subject::as_str)));
}

#[test]
fn changes_are_audited_newest_first() {
    let directory = store().directory();
    let client = Subject::of(["c"]);
    put(&directory, &client, &override_of(1), "one");
    put(&directory, &client, &override_of(2), "two");
    block_on(directory.remove_overrides(&client, None, "three")).unwrap();
    block_on(directory.remove_overrides(&client, None, "nothing")).unwrap();
    block_on(directory.record("four")).unwrap();
    let page = |before: Option<&str>, most| block_on(directory.audit(before, most)).unwrap();
    let fields = |entry: &AuditEntry| (entry.entry.clone(), entry.old.clone(), entry.new.clone());
    let newest = page(None, 2);
    let older = page(Some(&newest[1].id), 9);
    let entries: Vec<_> = newest.iter().chain(&older).map(fields).collect();
    let expected = [
        ("four", None, None),
        ("three", Some(override_of(2)), None),
        ("two", Some(override_of(1)), Some(override_of(2))),
        ("one", None, Some(override_of(1))),
    ];
    assert_eq!(entries, expected.map(|(entry, old, new)| (entry.to_owned(), old, new)));
    assert!(newest[0].at.as_micros() > 1_700_000_000_000_000, "by the server's clock");
    for foreign in ["", "+", "1-2-3", "x-1"] {
        let error = block_on(directory.audit(Some(foreign), 1)).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Cursor, "{foreign}");
    }
}

#[test]
fn audit_is_capped() {
    let server = Server::start(Flavor::Redis);
    let directory = builder(&server).build().directory();
    block_on(async {
        for _ in 0..10_300 {
            directory.record("again").await.unwrap();
        }
    });
    let length = server.raw().call(&["XLEN", "rl:audit{rl:overrides}"]).int();
    assert!((10_000..10_200).contains(&length), "{length}");
}

/// Returns a follower and the overrides that it applies.
fn follow(store: &RedisStore) -> (Receiver<StoredOverrides>, OverrideFollower) {
    let (sender, receiver) = channel();
    let apply = move |stored: &StoredOverrides| sender.send(stored.clone()).unwrap_or_default();
    let follower = block_on(store.directory().follow_overrides(apply)).unwrap();
    (receiver, follower)
}

/// Waits until a follower applies the overrides of exactly these clients.
fn wait_for(receiver: &Receiver<StoredOverrides>, expected: &[&str]) -> StoredOverrides {
    let end = Instant::now() + MAX_WAIT;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let stored = receiver.recv_timeout(left).expect("the overrides are applied in time");
        if clients(&stored.overrides) == expected {
            return stored;
        }
    }
}

#[test]
fn change_on_one_node_reaches_another() {
    let prefix = prefix();
    let [one, other] =
        [(); 2].map(|()| builder(shared(Flavor::Redis)).prefix(&*prefix).unwrap().build());
    let directory = one.directory();
    let [c, d] = [Subject::of(["c"]), Subject::of(["d"])];
    put(&directory, &c, &override_of(1), "");
    let (received, _follower) = follow(&other);
    wait_for(&received, &[":c"]);
    put(&directory, &d, &override_of(2), "");
    let stored = wait_for(&received, &[":c", ":d"]);
    assert_eq!(*stored.overrides.get(&d)[0], override_of(2));
    put(&directory, &d, &override_of(3).for_rule("api"), "");
    eventually("the override of a second rule is applied", || {
        received.try_iter().any(|stored| stored.overrides.get(&d).len() == 2)
    });
    block_on(directory.remove_overrides(&c, None, "")).unwrap();
    wait_for(&received, &[":d"]);
}

#[test]
fn override_expires_on_all_nodes() {
    let store = store();
    let (received, _follower) = follow(&store);
    let micros = |time: std::time::SystemTime| {
        u64::try_from(time.duration_since(std::time::UNIX_EPOCH).unwrap().as_micros()).unwrap()
    };
    let end = std::time::SystemTime::now() + Duration::from_secs(5);
    put(&store.directory(), &Subject::of(["c"]), &expiring_at(micros(end)), "");
    wait_for(&received, &[":c"]);
    wait_for(&received, &[]);
    assert!(std::time::SystemTime::now() >= end, "the override ended early");
}

#[test]
fn known_overrides_apply_until_redis_answers() {
    let server = Server::start(Flavor::Redis);
    let store = builder(&server).build();
    server.kill();
    let saved =
        [(Subject::of(["saved"]), override_of(1)), (Subject::of(["expired"]), expiring_at(1))];
    let known: Overrides = saved.into_iter().collect();
    let (sender, received) = channel();
    let apply = move |stored: &StoredOverrides| sender.send(stored.clone()).unwrap_or_default();
    let directory = store.directory();
    let follower = block_on(async { directory.follow_overrides_from(&known, apply) });
    wait_for(&received, &[":saved"]);
    eventually("the failure is reported", || follower.last_error().is_some());
    // The server restarts empty.
    server.restart();
    wait_for(&received, &[]);
    put(&directory, &Subject::of(["new"]), &override_of(2), "");
    wait_for(&received, &[":new"]);
    eventually("the follower is up to date", || follower.last_error().is_none());
}

#[test]
fn missed_changes_are_read_after_reconnect() {
    let server = Server::start(Flavor::Redis);
    let (received, _follower) = follow(&builder(&server).build());
    let directory = builder(&server).build().directory();
    put(&directory, &Subject::of(["c"]), &override_of(1), "");
    wait_for(&received, &[":c"]);
    // A change without an event.
    let text = [b"\0\0\0\0\0\0\0".to_vec(), override_of(2).to_text().into_bytes()].concat();
    server.raw().call(&[b"HSET", &b"rl:overrides"[..], b":d", &text]);
    server.raw().call(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    wait_for(&received, &[":c", ":d"]);
}

#[test]
fn long_overrides_and_entries_are_listed() {
    let directory = store().directory();
    let hostile = "\u{1}".repeat(1000);
    for nth in 0..300 {
        let client = Subject::of([format!("{nth}{}", "ä".repeat(500))]);
        put(&directory, &client, &override_of(nth).recorded_by("a", hostile.clone()), &hostile);
    }
    assert_eq!(stored_overrides(&directory).overrides.len(), 300);
    assert_eq!(block_on(directory.audit(None, 1000)).unwrap().len(), 300);
    assert_eq!(block_on(directory.audit(None, 120)).unwrap().len(), 120);
}

#[test]
fn follower_polls_without_a_subscription() {
    let server = Server::start(Flavor::Redis);
    let rights = ["ACL", "SETUSER", "mute", "on", ">secret", "~*", "&*", "+@all", "-subscribe"];
    assert!(!server.raw().call(&rights).is_error());
    let mute = RedisStore::builder(server.url_with("mute:secret@", 0).parse().unwrap());
    let mute = mute.timeout(Duration::from_secs(60)).build();
    let (received, follower) = follow(&mute);
    let directory = builder(&server).build().directory();
    put(&directory, &Subject::of(["c"]), &override_of(1), "");
    wait_for(&received, &[":c"]);
    block_on(directory.remove_overrides(&Subject::of(["c"]), None, "")).unwrap();
    wait_for(&received, &[]);
    assert_eq!(follower.last_error(), None);
    server.kill();
    eventually("the error is reported", || follower.last_error().is_some());
}

#[test]
fn unreadable_override_is_reported_and_removable() {
    let server = Server::start(Flavor::Redis);
    let later = b"\0\0\0\0\0\0\0{\"version\":2}";
    server.raw().call(&[b"HSET", &b"rl:overrides"[..], b":c", later]);
    let store = builder(&server).build();
    let (directory, c) = (store.directory(), Subject::of(["c"]));
    assert_eq!(stored_overrides(&directory).unreadable, [":c"]);
    let error = block_on(directory.get_overrides(&c)).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Incompatible);
    let (received, follower) = follow(&store);
    block_on(directory.remove_overrides(&c, None, "")).unwrap();
    block_on(follower.refresh(&c)).unwrap();
    let is_readable = |stored: StoredOverrides| stored.unreadable.is_empty();
    eventually("no override is unreadable", || received.try_iter().any(is_readable));
}
