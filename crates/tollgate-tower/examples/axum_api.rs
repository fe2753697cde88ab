//! An axum service with 10 requests per minute and 100 per hour for each `X-Client-Id`.
//!
//! ```console
//! $ PORT=3000 cargo run -p tollgate-tower --example axum_api
//! $ curl -i -H 'X-Client-Id: c1' localhost:3000
//! ```
//!
//! Without `REDIS_URL` it counts in memory; with it in Redis, shared by all processes, and in each process while Redis is
//! unavailable. `PORT` defaults to 3000; 0 selects a free port.

use std::env::{self, VarError};
use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tollgate::{FallbackStore, Limiter, MemoryStore, Policy, Store, StoreEvent};
use tollgate_redis::RedisStore;
use tollgate_tower::{Header, RateLimitLayer, run_store_maintenance};

const POLICY: &str = "
version: 1
rules:
  - name: external-api
    per: [client]
    limits: [10/min, 100/h]       # a request takes from both or from neither
    algorithm: token_bucket
";

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("axum_api: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let port = match setting("PORT")? {
        Some(port) => port.parse::<u16>().map_err(|error| format!("PORT {port:?}: {error}"))?,
        None => 3000,
    };
    let policy = Policy::from_yaml("axum_api", POLICY, Policy::builtin_limit())?;
    match setting("REDIS_URL")? {
        Some(url) => {
            let redis =
                RedisStore::new(url.parse().map_err(|error| format!("REDIS_URL: {error}"))?);
            let store = Arc::new(FallbackStore::builder(redis).on_event(report).build());
            tokio::spawn(run_store_maintenance(&store));
            serve(port, app(store, policy)).await
        }
        None => serve(port, app(MemoryStore::new(), policy)).await,
    }
}

fn app(store: impl Store + 'static, policy: Policy) -> Router {
    let limiter = Limiter::new(store, policy);
    let layer =
        RateLimitLayer::builder(limiter).fact("client", Header::from_static("x-client-id")).build();
    Router::new().route("/", get(async || "Hello!\n")).layer(layer)
}

async fn serve(port: u16, app: Router) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    let shutdown = async { drop(tokio::signal::ctrl_c().await) };
    Ok(axum::serve(listener, app).with_graceful_shutdown(shutdown).await?)
}

/// Logs only the start and end of an outage; errors of single calls during it repeat the same reason.
fn report(event: StoreEvent<'_>) {
    match event {
        StoreEvent::Lost { reason, .. } => {
            eprintln!("Redis unavailable, deciding locally: {reason}")
        }
        StoreEvent::Restored(outage) => eprintln!("Redis restored: {outage:?}"),
        _ => {}
    }
}

fn setting(name: &str) -> Result<Option<String>, String> {
    match env::var(name) {
        Ok(value) if value.is_empty() => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(format!("{name} is not valid Unicode")),
    }
}
