//! What a service does while its Redis is away: it starts one, kills it, and starts it again.
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
use tollgate_tower::{Header, RateLimitLayer, maintain_store};

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
    tokio::spawn(maintain_store(&store));
    let url = serve(Arc::clone(&store)).await?;

    println!("Redis serves: {}", asked(&url, 3).await?);
    redis.kill();
    println!("Redis killed: {}", asked(&url, 6).await?);
    redis.restart();
    until_asked(&store).await?;
    println!("Redis back:   {}", asked(&url, 4).await?);
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

/// Asks so often, and says what became of each.
async fn asked(url: &str, times: usize) -> Result<String, reqwest::Error> {
    let client = reqwest::Client::new();
    let mut said = Vec::new();
    for _ in 0..times {
        let response = client.get(url).header("x-client-id", "c1").send().await?;
        let left = response.headers().get("x-ratelimit-remaining");
        let left = left.and_then(|left| left.to_str().ok()).unwrap_or("?");
        said.push(format!("{} ({left} left)", response.status().as_u16()));
    }
    Ok(said.join(", "))
}

/// Waits until Redis is asked again, which somebody looks after once a second.
async fn until_asked(store: &Shared) -> Result<(), &'static str> {
    let begun = Instant::now();
    while store.breaker() != BreakerState::Closed {
        if begun.elapsed() > Duration::from_secs(60) {
            return Err("Redis was not asked again within a minute");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

fn report(event: StoreEvent<'_>) {
    match event {
        StoreEvent::Lost { reason, .. } => println!("lost: {reason}"),
        StoreEvent::Restored(outage) => {
            println!(
                "back: {} passed and {} were refused meanwhile",
                outage.admitted, outage.refused
            );
        }
        _ => {}
    }
}
