//! Different limits for anonymous callers, API keys and internal jobs, and for individual routes.
//!
//! ```console
//! $ cargo run -p tollgate-tower --example tiers_and_routes
//! ```
//!
//! It starts a service, sends requests as each kind of caller and prints the statuses.

use std::error::Error;
use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use http::HeaderName;
use tokio::net::TcpListener;
use tollgate::{Limiter, MemoryStore, Policy};
use tollgate_tower::{ApiKey, RateLimitLayer};

const POLICY: &str = include_str!("tiers_and_routes.yaml");

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let app = app()?.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, app).await });

    for (caller, key) in [("anonymous", None), ("gold", Some("s3cret")), ("jobs", Some("test"))] {
        for path in ["/search", "/items"] {
            let statuses = six_times(&format!("http://{address}{path}"), key).await?;
            println!("{caller:9} {path:7} {}", statuses.join(" "));
        }
    }
    Ok(())
}

fn app() -> Result<Router, Box<dyn Error>> {
    let policy = Policy::from_yaml("tiers_and_routes.yaml", POLICY, Policy::builtin_limit())?;
    let limiter = Limiter::new(MemoryStore::new(), policy);
    let key = ApiKey::header(HeaderName::from_static("x-api-key"));
    let layer = RateLimitLayer::builder(limiter).fact("api_key", key).build();
    Ok(Router::new()
        .route("/search", get(async || "found"))
        .route("/items", get(async || "items"))
        .route("/export", get(async || "exported"))
        .layer(layer))
}

async fn six_times(url: &str, key: Option<&str>) -> Result<Vec<String>, reqwest::Error> {
    let client = reqwest::Client::new();
    let mut statuses = Vec::new();
    for _ in 0..6 {
        let request = client.get(url);
        let request =
            key.into_iter().fold(request, |request, key| request.header("x-api-key", key));
        statuses.push(request.send().await?.status().as_u16().to_string());
    }
    Ok(statuses)
}
