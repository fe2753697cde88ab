//! Degraded mode: starts a Redis server, kills it and restarts it while a service handles requests.
//!
//! ```console
//! $ cargo run -p tollgate-tower --example degraded
//! ```
//!
//! Needs `redis-server` (`scripts/servers` installs it).

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tollgate::{BreakerState, FallbackStore, Limiter, Policy, StoreEvent};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::{Flavor, Server};
use tollgate_tower::{Header, RateLimitLayer, run_store_maintenance};

const POLICY: &str = "
version: 1
rules:
  - { name: api, per: [client], limits: [8/min] }
";

type Shared = Arc<FallbackStore<RedisStore>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let redis = Server::start(Flavor::Redis);
    let store = FallbackStore::builder(RedisStore::new(redis.url().parse()?));
    let store: Shared = Arc::new(store.on_event(report).build());
    tokio::spawn(run_store_maintenance(&store));
    let url = serve(Arc::clone(&store)).await?;

    println!("Redis up:     {}", send(&url, 3).await?);
    redis.kill();
    println!("Redis killed: {}", send(&url, 6).await?);
    redis.restart();
    wait_for_store(&store).await?;
    println!("Redis back:   {}", send(&url, 4).await?);
    Ok(())
}

async fn serve(store: Shared) -> Result<String, Box<dyn Error>> {
    let policy = Policy::from_yaml("degraded", POLICY, Policy::builtin_limit())?;
    let layer = RateLimitLayer::builder(Limiter::new(store, policy))
        .fact("client", Header::from_static("x-client-id"))
        .build();
    let app = Router::new().route("/", get(async || "Hello!\n")).layer(layer);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(url)
}

/// Sends requests and returns their statuses and remaining quotas.
async fn send(url: &str, times: usize) -> Result<String, reqwest::Error> {
    let client = reqwest::Client::new();
    let mut results = Vec::new();
    for _ in 0..times {
        let response = client.get(url).header("x-client-id", "c1").send().await?;
        let remaining = response.headers().get("x-ratelimit-remaining");
        let remaining = remaining.and_then(|value| value.to_str().ok()).unwrap_or("?");
        results.push(format!("{} ({remaining} left)", response.status().as_u16()));
    }
    Ok(results.join(", "))
}

/// Waits until the breaker is closed again; the maintenance task probes Redis once a second.
async fn wait_for_store(store: &Shared) -> Result<(), &'static str> {
    let start = Instant::now();
    while store.breaker() != BreakerState::Closed {
        if start.elapsed() > Duration::from_secs(60) {
            return Err("the breaker did not close within a minute");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

fn report(event: StoreEvent<'_>) {
    match event {
        StoreEvent::Lost { reason, .. } => println!("store lost: {reason}"),
        StoreEvent::Restored(outage) => {
            println!(
                "store restored: {} admitted and {} refused without it",
                outage.admitted, outage.refused
            );
        }
        _ => {}
    }
}
