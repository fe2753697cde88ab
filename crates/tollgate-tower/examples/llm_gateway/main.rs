//! A gateway in front of an API that is compatible with OpenAI: each API key has limits of requests, tokens, money and
//! concurrent streams.
//!
//! ```console
//! $ UPSTREAM_URL=https://api.openai.com cargo run -p tollgate-tower --example llm_gateway
//! $ curl -N localhost:3000/v1/chat/completions -H "Authorization: Bearer $OPENAI_API_KEY" \
//!     -H 'Content-Type: application/json' \
//!     -d '{"model":"gpt-4o-mini","stream":true,"messages":[{"role":"user","content":"Hello"}]}'
//! $ curl localhost:3000/usage -H "Authorization: Bearer $OPENAI_API_KEY"
//! ```
//!
//! [README.md](README.md) describes it. `PORT` defaults to 3000; 0 selects a free port. `REDIS_URL` shares the limits with
//! other gateways.

mod limits;
mod proxy;

use std::env;
use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use axum::routing::{any, get};
use axum::{Json, Router, middleware};
use serde_json::Value;
use tokio::net::TcpListener;
use tollgate_tower::RateLimitDecision;

use limits::Limits;
use proxy::Upstream;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("llm_gateway: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let port = env::var("PORT").unwrap_or_else(|_| "3000".to_owned());
    let port: u16 = port.parse().map_err(|error| format!("PORT {port:?}: {error}"))?;
    let url = env::var("UPSTREAM_URL").map_err(|error| format!("UPSTREAM_URL: {error}"))?;
    let upstream = Upstream::new(&url).map_err(|error| format!("UPSTREAM_URL {url:?}: {error}"))?;
    let redis_url = env::var("REDIS_URL").ok();
    let limits = Limits::new(redis_url.as_deref())?;
    let app = app(upstream, &limits);

    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}

fn app(upstream: Upstream, limits: &Limits) -> Router {
    let calls = Router::new().route("/v1/{*path}", any(proxy::forward));
    // The last layer runs first: it adds the estimate that the other one reserves.
    let calls = calls.layer(limits.reserving()).layer(middleware::from_fn(proxy::read_call));
    let usage = Router::new().route("/usage", get(usage)).layer(limits.reading());
    calls.with_state(Arc::new(upstream)).merge(usage)
}

/// Returns what is left of each limit of an API key.
async fn usage(decision: RateLimitDecision) -> Json<Value> {
    Json(limits::usage(&decision))
}
