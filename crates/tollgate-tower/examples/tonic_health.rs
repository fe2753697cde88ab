//! A tonic gRPC service with 5 calls per minute for each peer.
//!
//! ```console
//! $ PORT=50051 cargo run -p tollgate-tower --example tonic_health
//! ```
//!
//! It serves `grpc.health.v1.Health`. The sixth call is refused with `RESOURCE_EXHAUSTED` and the time to wait in
//! `google.rpc.RetryInfo`. `PORT` defaults to 50051; 0 selects a free port.

use std::env;
use std::error::Error;
use std::net::SocketAddr;

use tokio::net::TcpListener;
use tollgate::{Limiter, MemoryStore, Policy};
use tollgate_tower::{RateLimitLayer, RequestHead};
use tonic::transport::Server;
use tonic::transport::server::{TcpConnectInfo, TcpIncoming};

const POLICY: &str = "
version: 1
rules:
  - { name: calls, per: [ip], limits: [5/min] }
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = env::var("PORT").unwrap_or_else(|_| "50051".to_owned());
    let port: u16 = port.parse().map_err(|error| format!("PORT {port:?}: {error}"))?;
    let policy = Policy::from_yaml("tonic_health", POLICY, Policy::builtin_limit())?;
    let limiter = Limiter::new(MemoryStore::new(), policy);
    let layer = RateLimitLayer::builder(limiter).fact("ip", peer).build();

    let (_, health) = tonic_health::server::health_reporter();
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    let server = Server::builder().layer(layer).add_service(health);
    let shutdown = async { drop(tokio::signal::ctrl_c().await) };
    server.serve_with_incoming_shutdown(TcpIncoming::from(listener), shutdown).await?;
    Ok(())
}

/// Reads the peer address that tonic stores in the extensions.
fn peer(request: &RequestHead<'_>) -> Option<String> {
    let info = request.extensions.get::<TcpConnectInfo>()?;
    info.remote_addr().map(|peer| peer.ip().to_string())
}
