//! What ends a lease on a node, and what bounds it: events, changed limits, lost servers and their clocks.

use std::time::{Duration, Instant};

use tollgate::{Key, LeaseSize, Limit, Quota, Source, Store, Subject};
use tollgate_redis::RedisStore;
use tollgate_testkit::clock::{Clock, Shift};
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::{eventually, pause};

use crate::fixture::{block_on, builder, override_of, plan};
use crate::leases::{hourly, take, take_until_leased};

const HOUR: Duration = Duration::from_secs(3600);

/// A client leases from two nodes, and an event of a third one ends both leases. On a busy machine the hold may be over
/// before the events arrive. Then it is tried again with another client: an event must end leases before.
fn assert_ended_by(what: &str, end: impl Fn(&RedisStore, &Subject, &Limit)) {
    let server = Server::start(Flavor::Redis);
    let [one, two, other] = [(); 3].map(|()| builder(&server).build());
    let limit = hourly(100_000);
    let hold = limit.lease_hold().unwrap();
    let mut clients = (0..).map(|number| Subject::of([format!("client{number}")]));
    eventually(what, || {
        let client = clients.next().unwrap();
        // No lease of this client begins earlier.
        let begun = Instant::now();
        for store in [&one, &two] {
            take_until_leased(store, &client, &limit);
        }
        end(&other, &client, &limit);
        while one.lease_stats().held > 0 || two.lease_stats().held > 0 {
            pause();
        }
        begun.elapsed() < hold * 9 / 10
    });
}

#[test]
fn reset_ends_leases_on_every_node() {
    assert_ended_by("a reset ends leases", |other, client, limit| {
        block_on(other.reset(&Key::new(client, limit))).unwrap();
    });
}

#[test]
fn refund_ends_leases_on_every_node() {
    assert_ended_by("a refund ends leases", |other, client, limit| {
        block_on(other.refund(&plan(client, limit, 1))).unwrap();
    });
}

#[test]
fn pause_ends_leases_on_every_node() {
    assert_ended_by("a pause ends leases", |other, client, limit| {
        block_on(other.pause(&Key::new(client, limit), HOUR)).unwrap();
        assert!(!take(other, client, limit).is_allowed(), "the key is paused");
    });
}

#[test]
fn override_ends_leases_on_every_node() {
    assert_ended_by("an override ends leases", |other, client, _| {
        block_on(other.directory().put_override(client, &override_of(1), "")).unwrap();
    });
}

#[test]
fn changed_limit_does_not_use_the_lease() {
    let server = Server::start(Flavor::Redis);
    let store = builder(&server).build();
    let (subject, limit) = (Subject::of(["changed"]), hourly(100_000));
    take_until_leased(&store, &subject, &limit);
    for limit in [hourly(100), hourly(200_000), limit.with_lease(LeaseSize::Off)] {
        assert_eq!(take(&store, &subject, &limit).source(), Source::Store);
    }
}

#[test]
fn nothing_is_leased_without_a_subscription() {
    let server = Server::start(Flavor::Redis);
    let (store, mut raw) = (builder(&server).build(), server.raw());
    let (subject, limit) = (Subject::of(["unsubscribed"]), hourly(1_000_000));
    take_until_leased(&store, &subject, &limit);
    raw.call(&["ACL", "SETUSER", "default", "resetchannels"]);
    raw.call(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    let is_decided_by_store = || take(&store, &subject, &limit).source() == Source::Store;
    eventually("the subscription is lost", is_decided_by_store);
    for _ in 0..500 {
        assert!(is_decided_by_store(), "leased without a subscription");
    }
    raw.call(&["ACL", "SETUSER", "default", "allchannels"]);
    take_until_leased(&store, &subject, &limit);
}

/// A node may spend what it holds while its subscription seems to work, and then nothing.
#[test]
fn node_that_loses_the_store_admits_at_most_its_lease() {
    let server = Server::start(Flavor::Redis);
    let store = builder(&server).build();
    let (subject, limit) = (Subject::of(["lost"]), hourly(100_000));
    take_until_leased(&store, &subject, &limit);
    let spent = store.lease_stats().spent;
    server.kill();
    let mut admitted = 0;
    eventually("the node holds no lease", || {
        let decision = block_on(store.take(&plan(&subject, &limit, 1)));
        admitted += u64::from(decision.is_ok_and(|decision| decision.is_allowed()));
        store.lease_stats().held == 0
    });
    let granted = store.lease_stats().granted;
    assert!(admitted <= granted - spent, "{admitted} of {granted} - {spent}");
    for _ in 0..100 {
        assert!(block_on(store.take(&plan(&subject, &limit, 1))).is_err());
    }
}

/// The bucket is full again for the server, and a lease of the time before is still held: together at most one more burst.
#[test]
fn clock_step_of_the_server_admits_at_most_one_more_burst() {
    const BURST: u64 = 20_000;
    let clock = Clock::new();
    let server = Server::builder(Flavor::Redis).clock(&clock).start();
    let (holder, other) = (builder(&server).build(), builder(&server).build());
    let quota = Quota::new(BURST, HOUR / 2);
    let bucket = Limit::token_bucket(quota).unwrap();
    let limit = bucket.clone().with_lease(LeaseSize::Auto);
    let subject = Subject::of(["stepped"]);
    let began = Instant::now();
    let mut admitted = take_until_leased(&holder, &subject, &limit);
    let seconds = || server.raw().call(&["TIME"]).array()[0].text().parse::<u64>().unwrap();
    let before = seconds();
    clock.set(Shift::Ahead(HOUR));
    eventually("the server uses the new clock", || seconds() > before + HOUR.as_secs() / 2);
    while holder.leased(&Key::new(&subject, &limit)) > 0
        && take(&holder, &subject, &limit).is_allowed()
    {
        admitted += 1;
    }
    for cost in [100, 1] {
        while block_on(other.take(&plan(&subject, &bucket, cost))).unwrap().is_allowed() {
            admitted += cost;
        }
    }
    let refilled = BURST * (began.elapsed().as_secs() + 1) / (HOUR / 2).as_secs();
    assert!(admitted <= 2 * BURST + refilled, "{admitted}");
}
