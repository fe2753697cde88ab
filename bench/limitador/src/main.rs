//! Envoy's Rate Limit Service on the limitador library and tonic, or its HTTP API on axum, in place of limitador-server,
//! which no package registry has. It has neither metrics nor traces, so it is faster than limitador-server would be.

mod http;

use std::env;
use std::error::Error;
use std::process::ExitCode;

use generated::envoy::service::ratelimit::v3::rate_limit_response::Code;
use generated::envoy::service::ratelimit::v3::rate_limit_service_server::{
    RateLimitService, RateLimitServiceServer,
};
use generated::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use limitador::RateLimiter;
use limitador::limit::{Context, Limit};
use tokio::net::TcpListener;
use tokio::runtime;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

#[allow(dead_code, reason = "generated code")]
mod generated {
    include!("../../../crates/tollgate-server/src/grpc/generated/mod.rs");
}

const OPTIONS: &str = "--version | [--http] ADDRESS NAMESPACE MAX_VALUE SECONDS VARIABLE KEYS";

struct Limits(RateLimiter);

#[tonic::async_trait]
impl RateLimitService for Limits {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        let RateLimitRequest { domain, descriptors, hits_addend } = request.into_inner();
        let entries = descriptors.into_iter().map(|descriptor| descriptor.entries.into_iter());
        let values = entries.map(|entries| entries.map(|entry| (entry.key, entry.value)).collect());
        let mut context = Context::default();
        context.list_binding("descriptors".to_owned(), values.collect());
        let hits = u64::from(hits_addend.max(1));
        let result = self.0.check_rate_limited_and_update(&domain.into(), &context, hits);
        let result = result.map_err(|error| Status::unavailable(error.to_string()))?;
        let code = if result.limited { Code::OverLimit } else { Code::Ok };
        Ok(Response::new(RateLimitResponse { overall_code: code.into(), ..Default::default() }))
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["--version"] => {
            println!("limitador {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        ["--http", address, limit @ .., keys] => {
            limits(limit, keys).and_then(|limits| block_on(http::serve(address, limits)))
        }
        [address, limit @ .., keys] => {
            limits(limit, keys).and_then(|limits| block_on(serve(address, limits)))
        }
        _ => Err(OPTIONS.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("limitador_rls: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Creates one limit for each value of the variable, with capacity for all keys.
fn limits(limit: &[&str], keys: &str) -> Result<Limits, Box<dyn Error>> {
    let [namespace, max_value, seconds, variable] = limit else { return Err(OPTIONS.into()) };
    let limiter = RateLimiter::new(keys.parse()?);
    let variables = vec![(*variable).try_into()?];
    let (max_value, seconds) = (max_value.parse()?, seconds.parse()?);
    limiter.add_limit(Limit::new(*namespace, max_value, seconds, Vec::new(), variables));
    Ok(Limits(limiter))
}

/// Has one worker, since the process has one core.
fn block_on(serving: impl Future<Output = Result<(), Box<dyn Error>>>) -> Result<(), Box<dyn Error>> {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(serving)
}

/// Logs the listening address to standard error, as tollgate does.
async fn serve(address: &str, limits: Limits) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address).await?;
    eprintln!("listening on grpc://{}", listener.local_addr()?);
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let service = RateLimitServiceServer::new(limits);
    Ok(Server::builder().add_service(service).serve_with_incoming(incoming).await?)
}
