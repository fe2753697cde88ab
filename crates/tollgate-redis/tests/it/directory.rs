//! The directory: change events.

use std::sync::mpsc::{Receiver, channel};

use tollgate::{Key, Limit, Quota, Store, Subject};
use tollgate_redis::{Change, Event, RedisStore};
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::MAX_WAIT;

use crate::fixture::{block_on, builder, override_of, plan, prefix, shared};

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
    block_on(directory.remove_overrides(&client, None, "entry")).unwrap();
    // These change nothing.
    block_on(directory.remove_overrides(&client, None, "entry")).unwrap();
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
