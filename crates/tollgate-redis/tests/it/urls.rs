//! A program written for one server runs on all of them by changing the URL alone.

use std::time::Duration;

use tollgate::{
    Decision, Key, Limit, Listing, Permit, PermitId, Plan, Status, Store, Subject, Take,
};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::Flavor;

use crate::fixture::{
    block_on, of_each_kind, patient_at, plan, shared, shared_cluster, shared_sentinels,
    shared_socket, shared_tls,
};

/// Of each kind of limit a customer has five, and so has the shop.
const LIMIT: u64 = 5;

/// What a shop's program is told, line by line. It knows the servers by their URL, and nothing else of them.
fn shop(url: &str) -> Vec<String> {
    let store = patient_at(url).prefix("shop:").unwrap().build();
    let mut told = Vec::new();
    block_on(async {
        store.connect().await.unwrap();
        for limit in of_each_kind(LIMIT) {
            told.push(limit.algorithm().to_string());
            told.extend(counts(&store, &limit).await);
            told.extend(orders(&store, &limit).await);
        }
        told.extend(slots(&store).await);
        told.push(listed(&store).await);
    });
    told
}

/// Without times, which go on while a test runs.
fn shown(what: &str, decision: &Decision<'_>) -> String {
    let left = decision.statuses().iter().map(Status::remaining).collect::<Vec<_>>();
    let waits = decision.retry_after().is_some();
    format!("{what}: {}, {left:?} left, waits {waits}", decision.is_allowed())
}

/// Everything that is done to one counter.
async fn counts(store: &RedisStore, limit: &Limit) -> Vec<String> {
    let subject = Subject::of(["ann"]);
    let (key, one) = (Key::new(&subject, limit), plan(&subject, limit, 1));
    let mut told = Vec::new();
    for _ in 0..=LIMIT {
        told.push(shown("take", &store.take(&one).await.unwrap()));
    }
    told.push(shown("refund", &store.refund(&one).await.unwrap()));
    told.push(shown("peek", &store.peek(&one).await.unwrap()));
    told.push(shown("debit", &store.debit(&one, Duration::ZERO).await.unwrap()));
    store.reset(&key).await.unwrap();
    told.push(shown("peek after a reset", &store.peek(&one).await.unwrap()));
    store.pause(&key, Duration::from_secs(3600)).await.unwrap();
    told.push(shown("take in a pause", &store.take(&one).await.unwrap()));
    told.push(format!("stats: {} left", store.stats(&key).await.unwrap().remaining()));
    store.reset(&key).await.unwrap();
    told.push(shown("take after a pause", &store.take(&one).await.unwrap()));
    told
}

/// An order is counted for its customer and for the shop, for both or for neither.
async fn orders(store: &RedisStore, limit: &Limit) -> Vec<String> {
    let customers =
        ["bob", "cid", "dan", "eve", "fay", "gus", "leo"].map(|name| Subject::of([name]));
    let shop = Subject::of(["shop"]);
    let mut told = Vec::new();
    for customer in &customers {
        let takes = [customer, &shop].map(|subject| Take::new(Key::new(subject, limit), 1));
        let order = store.take(&Plan::new(takes).unwrap()).await.unwrap();
        let own = store.peek(&plan(customer, limit, 1)).await.unwrap();
        told.extend([shown("order", &order), shown("customer", &own)]);
    }
    told
}

/// Slots are held by two permits of the three that ask, given back and held again.
async fn slots(store: &RedisStore) -> Vec<String> {
    let (subject, limit) =
        (Subject::of(["till"]), Limit::concurrency(2, Duration::from_secs(3600)));
    let limit = limit.unwrap().named("tills").unwrap();
    let mut told = Vec::new();
    let mut permits = Vec::new();
    for number in 1..=3 {
        let permit = PermitId::from_u128(number).unwrap();
        let held = plan(&subject, &limit, 1).with_permit(permit);
        let decision = store.take(&held).await.unwrap();
        told.push(shown("hold", &decision));
        permits.extend(Permit::of(&held, &decision));
    }
    for permit in &permits {
        told.push(format!("renew: {}", store.renew(permit).await.unwrap().is_some()));
        told.push(format!("release: {}", store.release(permit).await.unwrap()));
        told.push(format!("once more: {}", store.release(permit).await.unwrap()));
    }
    told.push(shown("free", &store.take(&plan(&subject, &limit, 2)).await.unwrap()));
    told
}

/// In order, which listings have none of.
async fn listed(store: &RedisStore) -> String {
    let (mut next, mut found) = (Some(Listing::all().with_page_size(3)), Vec::new());
    while let Some(listing) = next {
        let page = store.list(&listing).await.unwrap();
        found.extend(page.keys.into_iter().map(|key| format!("{} {}", key.algorithm, key.subject)));
        next = page.next.map(|cursor| listing.after(cursor));
    }
    found.sort();
    found.join(", ")
}

#[test]
fn a_program_for_one_server_runs_on_all_by_its_url_alone() {
    let expected = shop(&shared(Flavor::Redis).url());
    // Five of each of six kinds. Whether the rest is right is for the suite to tell.
    let admitted = expected.iter().filter(|line| line.starts_with("take: true")).count();
    let ordered = expected.iter().filter(|line| line.starts_with("order: true")).count();
    assert_eq!((admitted, ordered), (30, 30), "{expected:#?}");
    let urls = [
        shared(Flavor::Valkey).url(),
        shared_tls(),
        shared_socket(Flavor::Redis),
        shared_socket(Flavor::Valkey),
        shared_sentinels(Flavor::Redis).url(),
        shared_sentinels(Flavor::Valkey).url(),
        shared_cluster(Flavor::Redis).url(),
        shared_cluster(Flavor::Valkey).url(),
    ];
    for url in urls {
        assert_eq!(shop(&url), expected, "{url}");
    }
}
