//! The nodes in the directory: they join with their first report, leave, expire, and are counted.

use std::time::Duration;

use tollgate::Timestamp;
use tollgate_redis::{
    Directory, Node, NodeRecord, NodeState, OutgoingReport, ReportReply, Scripting,
};
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::eventually;

use crate::fixture::{block_on, builder, prefix, shared};

const HOUR: Duration = Duration::from_secs(3600);
const BRIEF: Duration = Duration::from_millis(20);

fn directory(flavor: Flavor) -> Directory {
    builder(shared(flavor)).prefix(prefix()).unwrap().build().directory()
}

fn record(id: &str) -> NodeRecord {
    let address = format!("10.0.0.1:{id}");
    NodeRecord { id: id.to_owned(), address, registered_at: Timestamp::from_micros(7_000_000) }
}

/// Sends a report without figures.
fn report(directory: &Directory, id: &str, lifetime: Duration) -> ReportReply {
    let report = OutgoingReport { node: &record(id), lifetime, events: &[], figures: None };
    block_on(directory.report(&report)).unwrap()
}

/// Returns the numbers of nodes that are up and down, and of departures.
fn counts(reply: &ReportReply) -> (u32, u32, u64) {
    (reply.up, reply.down, reply.departures)
}

fn leave(directory: &Directory, id: &str) {
    block_on(directory.leave(&record(id))).unwrap();
}

fn nodes(directory: &Directory) -> Vec<(String, NodeState)> {
    let nodes = block_on(directory.nodes()).unwrap();
    nodes.into_iter().map(|node| (node.id, node.state)).collect()
}

#[test]
fn nodes_are_listed_by_id_until_they_leave() {
    let directory = directory(Flavor::Redis);
    assert_eq!(nodes(&directory), []);
    for id in ["b", "c", "a", "b"] {
        report(&directory, id, HOUR);
    }
    let up = |id: &str| (id.to_owned(), NodeState::Up);
    assert_eq!(nodes(&directory), [up("a"), up("b"), up("c")]);
    let listed = block_on(directory.nodes()).unwrap();
    let Node { address, registered_at, last_seen, is_silent, .. } = &listed[0];
    assert_eq!((address.as_str(), registered_at.as_micros()), ("10.0.0.1:a", 7_000_000));
    assert!(last_seen.as_micros() > 1_700_000_000_000_000, "by the server's clock");
    assert!(!is_silent);
    leave(&directory, "b");
    leave(&directory, "unknown");
    assert_eq!(nodes(&directory), [up("a"), up("c")]);
}

#[test]
fn next_report_counts_nodes_that_joined_or_left() {
    for (flavor, scripting) in
        [(Flavor::Redis, Scripting::Function), (Flavor::Valkey, Scripting::Script)]
    {
        let store = builder(shared(flavor)).prefix(prefix()).unwrap().scripting(scripting);
        let directory = store.build().directory();
        assert_eq!(counts(&report(&directory, "a", HOUR)), (1, 0, 0));
        assert_eq!(counts(&report(&directory, "b", HOUR)), (2, 0, 0));
        assert_eq!(counts(&report(&directory, "a", HOUR)), (2, 0, 0), "one report later");
        leave(&directory, "b");
        assert_eq!(counts(&report(&directory, "a", HOUR)), (1, 0, 1));
        assert_eq!(counts(&report(&directory, "b", HOUR)), (2, 0, 1));
    }
}

#[test]
fn node_without_reports_is_down_until_its_next_report() {
    let directory = directory(Flavor::Redis);
    report(&directory, "steady", HOUR);
    report(&directory, "brief", BRIEF);
    let brief = || nodes(&directory)[0].clone();
    eventually("a node is down", || brief() == ("brief".to_owned(), NodeState::Down));
    assert_eq!(nodes(&directory)[1].1, NodeState::Up);
    assert_eq!(counts(&report(&directory, "steady", HOUR)), (1, 1, 0));
    assert_eq!(counts(&report(&directory, "brief", HOUR)), (2, 0, 0));
    assert_eq!(brief().1, NodeState::Up);
}

#[test]
fn departure_of_a_node_that_was_down_is_not_counted() {
    let directory = directory(Flavor::Redis);
    report(&directory, "brief", BRIEF);
    eventually("a node is down", || nodes(&directory)[0].1 == NodeState::Down);
    leave(&directory, "brief");
    assert_eq!(counts(&report(&directory, "steady", HOUR)), (1, 0, 0));
}

#[test]
fn reply_contains_the_previous_record_of_the_node() {
    let directory = directory(Flavor::Redis);
    let first = report(&directory, "a", HOUR);
    assert_eq!(first.previous, None);
    let other = NodeRecord { address: "10.0.0.2:a".to_owned(), ..record("a") };
    let outgoing = OutgoingReport { node: &other, lifetime: HOUR, events: &[], figures: None };
    let previous = block_on(directory.report(&outgoing)).unwrap().previous.unwrap();
    assert_eq!((&*previous.address, previous.last_seen), ("10.0.0.1:a", first.at));
    leave(&directory, "a");
    let kept = block_on(directory.nodes()).unwrap();
    assert_eq!(kept.len(), 1, "the id belongs to another node");
    block_on(directory.leave(&other)).unwrap();
    assert_eq!(nodes(&directory), []);
}

/// Encodes a record that was written `age` ago.
fn stored_record(now: Timestamp, age: Duration, lifetime: Duration) -> Vec<u8> {
    let seen = (now - age).as_micros();
    let lifetime = u64::try_from(lifetime.as_micros()).unwrap();
    let numbers = [seen, lifetime, 7_000_000].map(|number| number.to_be_bytes()[1..].to_vec());
    [numbers.concat(), b"host:1".to_vec()].concat()
}

#[test]
fn node_is_silent_after_five_seconds_without_a_report() {
    let prefix = prefix();
    let store = builder(shared(Flavor::Redis)).prefix(prefix.clone()).unwrap().build();
    let (directory, mut raw) = (store.directory(), shared(Flavor::Redis).raw());
    let now = report(&directory, "reporting", HOUR).at;
    for (id, age) in [("down", 3700), ("silent", 5)] {
        let record = stored_record(now, Duration::from_secs(age), HOUR);
        raw.call(&[&b"HSET"[..], format!("{prefix}nodes").as_bytes(), id.as_bytes(), &record]);
    }
    let listed = block_on(directory.nodes()).unwrap();
    let listed: Vec<_> =
        listed.iter().map(|node| (&*node.id, node.state, node.is_silent)).collect();
    let expected = [
        ("down", NodeState::Down, true),
        ("reporting", NodeState::Up, false),
        ("silent", NodeState::Up, true),
    ];
    assert_eq!(listed, expected);
}

#[test]
fn nodes_are_removed_after_a_day_without_reports() {
    let prefix = prefix();
    let store = builder(shared(Flavor::Redis)).prefix(prefix.clone()).unwrap().build();
    let (directory, mut raw) = (store.directory(), shared(Flavor::Redis).raw());
    let now = report(&directory, "old", HOUR).at;
    let deadlines = format!("{prefix}deadlines{{{prefix}nodes}}");
    let day_ago = (now - Duration::from_secs(86_400)).as_micros().to_string();
    raw.call(&["ZADD", &deadlines, &day_ago, "old"]);
    assert_eq!(counts(&report(&directory, "new", HOUR)), (1, 0, 0));
    assert_eq!(nodes(&directory), [("new".to_owned(), NodeState::Up)]);
}

/// Nodes may stop without leaving.
#[test]
fn node_list_expires() {
    let server = Server::start(Flavor::Redis);
    let directory = builder(&server).build().directory();
    report(&directory, "a", HOUR);
    report(&directory, "b", HOUR);
    leave(&directory, "b");
    for key in ["rl:nodes", "rl:deadlines{rl:nodes}", "rl:departures{rl:nodes}"] {
        let ttl = server.raw().call(&["TTL", key]).int();
        assert!((86_000..=86_400).contains(&ttl), "{key}: {ttl} s");
    }
}
