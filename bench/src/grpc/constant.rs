//! The baseline server: tonic with a constant response.

use std::io::Write;
use std::net::SocketAddr;

use prost::Message;
use tokio::net::TcpListener;
use tokio::runtime;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tracing::subscriber::{self, NoSubscriber};

use super::messages::{
    RateLimitRequest, RateLimitResponse, RateLimitService, RateLimitServiceServer,
};
use crate::Outcome;

/// Returns the same response to every call.
#[derive(Debug)]
struct Constant(RateLimitResponse);

#[tonic::async_trait]
impl RateLimitService for Constant {
    async fn should_rate_limit(
        &self,
        _request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        Ok(Response::new(self.0.clone()))
    }
}

/// Parses an encoded response in hexadecimal.
///
/// # Errors
/// The text is not hexadecimal, or not a response.
pub fn parse(hex: &str) -> Outcome<RateLimitResponse> {
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| Outcome::Ok(u8::from_str_radix(str::from_utf8(pair)?, 16)?);
    let bytes = pairs.map(byte).collect::<Outcome<Vec<u8>>>()?;
    Ok(RateLimitResponse::decode(bytes.as_slice())?)
}

/// Runs tonic's server with one worker, since the process has one core. Logs the listening address to standard error, as
/// tollgate does.
///
/// # Errors
/// The address cannot be bound.
pub fn serve(listen: SocketAddr, response: RateLimitResponse) -> Outcome<()> {
    // Without a subscriber, as no real server is, tracing formats the spans of HTTP/2 for the `log` crate.
    subscriber::set_global_default(NoSubscriber::new())?;
    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await?;
        writeln!(std::io::stderr(), "listening on grpc://{}", listener.local_addr()?)?;
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let service = RateLimitServiceServer::new(Constant(response));
        Ok(Server::builder().add_service(service).serve_with_incoming(incoming).await?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_a_response_in_hexadecimal() {
        assert_eq!(parse("0801").unwrap().overall_code, 1);
        for text in ["08", "0x", "é"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
