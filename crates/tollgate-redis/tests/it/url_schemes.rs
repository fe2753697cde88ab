//! A program runs on all kinds of deployments by a change of the URL alone.

use std::time::Duration;

use tollgate::{
    Decision, Key, Limit, Listing, Permit, PermitId, Plan, Status, Store, Subject, Take,
};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::Flavor;

use crate::fixture::{
    block_on, builder_at, limits_of_each_algorithm, plan, shared, shared_cluster, shared_sentinels,
    shared_socket, shared_tls,
};

/// The count of every limit, for a customer and for the shop.
const LIMIT: u64 = 5;

/// Runs a program that knows its servers only by the URL. Returns its output lines.
fn run_shop(url: &str) -> Vec<String> {
    let store = builder_at(url).prefix("shop:").unwrap().build();
    let mut lines = Vec::new();
    block_on(async {
        store.connect().await.unwrap();
        for limit in limits_of_each_algorithm(LIMIT) {
            lines.push(limit.algorithm().to_string());
            lines.extend(counter_operations(&store, &limit).await);
            lines.extend(order_operations(&store, &limit).await);
        }
        lines.extend(slot_operations(&store).await);
        lines.push(list_keys(&store).await);
    });
    lines
}

/// Describes a decision without times.
fn describe(operation: &str, decision: &Decision<'_>) -> String {
    let left = decision.statuses().iter().map(Status::remaining).collect::<Vec<_>>();
    let waits = decision.retry_after().is_some();
    format!("{operation}: {}, {left:?} left, waits {waits}", decision.is_allowed())
}

/// Runs all operations on one counter.
async fn counter_operations(store: &RedisStore, limit: &Limit) -> Vec<String> {
    let subject = Subject::of(["ann"]);
    let (key, one) = (Key::new(&subject, limit), plan(&subject, limit, 1));
    let mut lines = Vec::new();
    for _ in 0..=LIMIT {
        lines.push(describe("take", &store.take(&one).await.unwrap()));
    }
    lines.push(describe("refund", &store.refund(&one).await.unwrap()));
    lines.push(describe("peek", &store.peek(&one).await.unwrap()));
    lines.push(describe("debit", &store.debit(&one, Duration::ZERO).await.unwrap()));
    store.reset(&key).await.unwrap();
    lines.push(describe("peek after a reset", &store.peek(&one).await.unwrap()));
    store.pause(&key, Duration::from_secs(3600)).await.unwrap();
    lines.push(describe("take in a pause", &store.take(&one).await.unwrap()));
    lines.push(format!("stats: {} left", store.stats(&key).await.unwrap().remaining()));
    store.reset(&key).await.unwrap();
    lines.push(describe("take after a pause", &store.take(&one).await.unwrap()));
    lines
}

/// An order counts for its customer and for the shop, for both or for neither.
async fn order_operations(store: &RedisStore, limit: &Limit) -> Vec<String> {
    let customers =
        ["bob", "cid", "dan", "eve", "fay", "gus", "leo"].map(|name| Subject::of([name]));
    let shop = Subject::of(["shop"]);
    let mut lines = Vec::new();
    for customer in &customers {
        let takes = [customer, &shop].map(|subject| Take::new(Key::new(subject, limit), 1));
        let order = store.take(&Plan::new(takes).unwrap()).await.unwrap();
        let customer_status = store.peek(&plan(customer, limit, 1)).await.unwrap();
        lines.extend([describe("order", &order), describe("customer", &customer_status)]);
    }
    lines
}

/// Three permits compete for two slots, which are released and taken again.
async fn slot_operations(store: &RedisStore) -> Vec<String> {
    let (subject, limit) =
        (Subject::of(["till"]), Limit::concurrency(2, Duration::from_secs(3600)));
    let limit = limit.unwrap().named("tills").unwrap();
    let mut lines = Vec::new();
    let mut permits = Vec::new();
    for number in 1..=3 {
        let permit = PermitId::from_u128(number).unwrap();
        let held = plan(&subject, &limit, 1).with_permit(permit);
        let decision = store.take(&held).await.unwrap();
        lines.push(describe("hold", &decision));
        permits.extend(Permit::of(&held, &decision));
    }
    for permit in &permits {
        lines.push(format!("renew: {}", store.renew(permit).await.unwrap().is_some()));
        lines.push(format!("release: {}", store.release(permit).await.unwrap()));
        lines.push(format!("release again: {}", store.release(permit).await.unwrap()));
    }
    lines.push(describe("free", &store.take(&plan(&subject, &limit, 2)).await.unwrap()));
    lines
}

/// Lists the keys in sorted order.
async fn list_keys(store: &RedisStore) -> String {
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
fn program_runs_on_all_deployments_by_its_url() {
    let expected = run_shop(&shared(Flavor::Redis).url());
    // Five of each of six algorithms. The conformance suite checks the rest.
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
        assert_eq!(run_shop(&url), expected, "{url}");
    }
}
