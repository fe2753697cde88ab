//! A policy enables leases: neither the layer nor the program that uses it changes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use tollgate::lease::LeaseStats;
use tollgate::{Limiter, Policy};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::MAX_WAIT;
use tollgate_tower::RateLimitLayer;
use tower::{Layer, ServiceExt, service_fn};

const LIMIT: u64 = 400;

/// Sends requests through a layer until one is refused, which must be within the limit. Returns the figures of the store.
async fn use_up(lease: &str) -> LeaseStats {
    let server = Server::start(Flavor::Redis);
    let policy = format!(
        "version: 1\ndefaults: {{ limit: {LIMIT}/d, algorithm: fixed_window, lease: {lease} }}\n"
    );
    let policy = Policy::from_yaml("policy.yaml", &policy, Policy::builtin_limit()).unwrap();
    let store =
        RedisStore::builder(server.url().parse().unwrap()).timeout(Duration::from_secs(60)).build();
    let layer = RateLimitLayer::builder(Arc::new(Limiter::new(store.clone(), policy))).build();
    let service = layer.layer(service_fn(async |_: Request<()>| {
        Ok::<_, Infallible>(Response::new(String::new()))
    }));
    let mut admitted = 0;
    let refused = tokio::time::timeout(MAX_WAIT, async {
        loop {
            let response = service.clone().oneshot(Request::new(())).await.unwrap();
            if response.status() == StatusCode::TOO_MANY_REQUESTS {
                break;
            }
            admitted += 1;
        }
    });
    refused.await.unwrap();
    let stats = store.lease_stats();
    let unspent = stats.granted - stats.spent;
    assert!(admitted <= LIMIT && admitted + unspent >= LIMIT, "{admitted} {stats:?}");
    stats
}

#[tokio::test]
async fn layer_decides_from_leases_if_the_policy_enables_them() {
    // A busy machine may not make enough decisions within the time of a lease.
    let leased = async { while use_up("auto").await.decisions == 0 {} };
    tokio::time::timeout(MAX_WAIT, leased).await.unwrap();
    assert_eq!(use_up("off").await.grants, 0);
}
