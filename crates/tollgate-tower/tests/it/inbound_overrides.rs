//! Overrides set on one node apply to the layer of another.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, Request, Response};
use tokio::time::timeout;
use tollgate::{Limiter, Override, OverrideLimit, Policy, Subject};
use tollgate_redis::{RedisStore, StoredOverrides};
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::MAX_WAIT;
use tollgate_tower::{Header, RateLimitLayer};
use tower::{Layer, ServiceExt, service_fn};

const DAY: Duration = Duration::from_secs(86_400);

fn store(server: &Server) -> RedisStore {
    RedisStore::builder(server.url().parse().unwrap()).timeout(Duration::from_secs(60)).build()
}

#[tokio::test]
async fn layer_follows_overrides_of_the_fleet() {
    let server = Server::start(Flavor::Redis);
    let policy = "version: 1\ndefaults: { limit: 10/d }\n";
    let policy = Policy::from_yaml("policy.yaml", policy, Policy::builtin_limit()).unwrap();
    let local_store = store(&server);
    let limiter = Arc::new(Limiter::new(local_store.clone(), policy));
    let updated = Arc::clone(&limiter);
    let update = move |stored: &StoredOverrides| updated.set_overrides(&stored.overrides);
    let _following = local_store.directory().follow_overrides(update).await.unwrap();
    let header = Header::new(HeaderName::from_static("x-client"));
    let layer = RateLimitLayer::builder(limiter).fact("client", header).build();
    let service = layer.layer(service_fn(async |_: Request<()>| {
        Ok::<_, Infallible>(Response::new(String::new()))
    }));
    let limit = async || {
        let request = Request::get("/").header("x-client", "c1").body(()).unwrap();
        let response = service.clone().oneshot(request).await.unwrap();
        let value = &response.headers()["x-ratelimit-limit"];
        value.to_str().unwrap().parse::<u64>().unwrap()
    };
    let wait_for_limit = async |expected: u64| {
        let reached = timeout(MAX_WAIT, async {
            while limit().await != expected {
                tokio::task::yield_now().await;
            }
        });
        reached.await.unwrap_or_else(|_| panic!("the limit did not become {expected}"));
    };
    assert_eq!(limit().await, 10);
    let other_node = store(&server).directory();
    let new_override = Override::new(vec![OverrideLimit::new(1_000, DAY)]).unwrap();
    let client = Subject::of(["c1"]);
    other_node.put_override(&client, &new_override, "").await.unwrap();
    wait_for_limit(1_000).await;
    other_node.remove_overrides(&client, None, "").await.unwrap();
    wait_for_limit(10).await;
}
