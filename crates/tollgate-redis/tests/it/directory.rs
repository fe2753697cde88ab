//! The directory: nodes, overrides and change events.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tollgate::{Key, Limit, Quota, Store, Subject, Timestamp};
use tollgate_redis::{Change, Directory, Event, Node, NodeRecord, NodeState, RedisStore};
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::{MAX_WAIT, eventually};

use crate::fixture::{block_on, builder, override_of, plan, prefix, shared};

const HOUR: Duration = Duration::from_secs(3600);

fn store() -> RedisStore {
    builder(shared(Flavor::Redis)).prefix(prefix()).unwrap().build()
}

fn record(id: &str) -> NodeRecord {
    let address = format!("10.0.0.1:{id}");
    NodeRecord { id: id.to_owned(), address, registered_at: Timestamp::from_micros(7_000_000) }
}

fn nodes(directory: &Directory) -> Vec<(String, NodeState)> {
    let nodes = block_on(directory.nodes()).unwrap();
    nodes.into_iter().map(|node| (node.id, node.state)).collect()
}

#[test]
fn nodes_are_listed_by_id_until_they_leave() {
    let directory = store().directory();
    assert_eq!(nodes(&directory), []);
    for id in ["b", "c", "a", "b"] {
        block_on(directory.heartbeat(&record(id), HOUR)).unwrap();
    }
    let up = |id: &str| (id.to_owned(), NodeState::Up);
    assert_eq!(nodes(&directory), [up("a"), up("b"), up("c")]);
    let listed = block_on(directory.nodes()).unwrap();
    let Node { address, registered_at, seen_at, .. } = &listed[0];
    assert_eq!((address.as_str(), registered_at.as_micros()), ("10.0.0.1:a", 7_000_000));
    assert!(seen_at.as_micros() > 1_700_000_000_000_000, "by the server's clock");
    block_on(directory.leave("b")).unwrap();
    block_on(directory.leave("unknown")).unwrap();
    assert_eq!(nodes(&directory), [up("a"), up("c")]);
}

#[test]
fn silent_node_is_down_until_its_next_heartbeat() {
    let directory = store().directory();
    block_on(directory.heartbeat(&record("steady"), HOUR)).unwrap();
    block_on(directory.heartbeat(&record("silent"), Duration::from_millis(20))).unwrap();
    let silent = || nodes(&directory)[0].clone();
    eventually("a node is down", || silent() == ("silent".to_owned(), NodeState::Down));
    assert_eq!(nodes(&directory)[1].1, NodeState::Up);
    block_on(directory.heartbeat(&record("silent"), HOUR)).unwrap();
    assert_eq!(silent().1, NodeState::Up);
}

/// Nodes may stop without leaving.
#[test]
fn node_list_expires() {
    let server = Server::start(Flavor::Redis);
    let directory = builder(&server).build().directory();
    block_on(directory.heartbeat(&record("a"), HOUR)).unwrap();
    let ttl = server.raw().call(&["TTL", "rl:nodes"]).int();
    assert!((86_000..=86_400).contains(&ttl), "{ttl} s");
}

/// Returns the events of a store, after it has subscribed.
fn watch(store: &RedisStore) -> Receiver<Event> {
    let (sender, receiver) = channel();
    block_on(async {
        store.directory().watch(move |event| sender.send(event).unwrap_or_default());
    });
    assert_eq!(receiver.recv_timeout(MAX_WAIT), Ok(Event::Subscribed));
    receiver
}

#[test]
fn changes_reach_every_node() {
    let prefix = prefix();
    let [one, other] =
        [(); 2].map(|()| builder(shared(Flavor::Redis)).prefix(&*prefix).unwrap().build());
    let events = [watch(&one), watch(&other)];
    let limit = Limit::token_bucket(Quota::per_hour(3)).unwrap();
    let subjects = [Subject::of(["c 1"]), Subject::of([""; 0])];
    let directory = one.directory();
    let client = Subject::of(["c"]);
    block_on(directory.put_override(&client, &override_of(1), "entry")).unwrap();
    block_on(directory.remove_override(&client, "entry")).unwrap();
    // These change nothing.
    block_on(directory.remove_override(&client, "entry")).unwrap();
    block_on(directory.record("entry")).unwrap();
    let mut expected = vec![Change::Override { client: ":c".to_owned() }; 2];
    for subject in &subjects {
        let _ = block_on(one.take(&plan(subject, &limit, 2))).unwrap();
        let _ = block_on(one.refund(&plan(subject, &limit, 1))).unwrap();
        block_on(one.reset(&Key::new(subject, &limit))).unwrap();
        let room = Change::QuotaFreed { subject: subject.as_str().to_owned() };
        expected.extend([room.clone(), room]);
    }
    let announced = Change::Override { client: "last".to_owned() };
    block_on(directory.announce(&announced)).unwrap();
    expected.push(announced);
    for received in events {
        for change in &expected {
            assert_eq!(received.recv_timeout(MAX_WAIT), Ok(Event::Changed(change.clone())));
        }
    }
}

#[test]
fn watcher_is_notified_of_a_lost_subscription() {
    let server = Server::start(Flavor::Redis);
    let events = watch(&builder(&server).build());
    drop(events.try_recv());
    let store = builder(&server).build();
    let events = watch(&store);
    server.raw().call(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    assert_eq!(events.recv_timeout(MAX_WAIT), Ok(Event::SubscriptionLost));
    assert_eq!(events.recv_timeout(MAX_WAIT), Ok(Event::Subscribed));
    drop(store);
    assert_eq!(events.recv_timeout(MAX_WAIT), Ok(Event::SubscriptionLost), "the store is dropped");
}
