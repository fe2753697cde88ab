//! A client's own limits, set on one node of a fleet, before a service of another.

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
async fn the_layer_obeys_the_overrides_of_the_fleet() {
    let server = Server::start(Flavor::Redis);
    let policy = "version: 1\ndefaults: { limit: 10/d }\n";
    let policy = Policy::from_yaml("policy.yaml", policy, Policy::builtin_limit()).unwrap();
    let store_here = store(&server);
    let limiter = Arc::new(Limiter::new(store_here.clone(), policy));
    let obeying = Arc::clone(&limiter);
    let obey = move |stored: &StoredOverrides| obeying.set_overrides(&stored.overrides);
    let _following = store_here.directory().follow_overrides(obey).await.unwrap();
    let header = Header::new(HeaderName::from_static("x-client"));
    let layer = RateLimitLayer::builder(limiter).fact("client", header).build();
    let service = layer.layer(service_fn(async |_: Request<()>| {
        Ok::<_, Infallible>(Response::new(String::new()))
    }));
    let limit = async || {
        let request = Request::get("/").header("x-client", "c1").body(()).unwrap();
        let response = service.clone().oneshot(request).await.unwrap();
        let told = &response.headers()["x-ratelimit-limit"];
        told.to_str().unwrap().parse::<u64>().unwrap()
    };
    let becomes = async |wanted: u64| {
        let seen = timeout(MAX_WAIT, async {
            while limit().await != wanted {
                tokio::task::yield_now().await;
            }
        });
        seen.await.unwrap_or_else(|_| panic!("it never was {wanted}"));
    };
    assert_eq!(limit().await, 10);
    let elsewhere = store(&server).directory();
    let own = Override::new(vec![OverrideLimit::new(1_000, DAY)]).unwrap();
    let client = Subject::of(["c1"]);
    elsewhere.put_override(&client, &own, "").await.unwrap();
    becomes(1_000).await;
    elsewhere.remove_override(&client, "").await.unwrap();
    becomes(10).await;
}
