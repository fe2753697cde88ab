//! A blocking gRPC client of the rate limit service, on tonic.

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tollgate_testkit::http2::SHOULD_RATE_LIMIT;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::service::{Service, eventually};

#[allow(
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    dead_code,
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code"
)]
mod generated {
    include!("../../src/grpc/generated/mod.rs");
}

pub(crate) use generated::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
pub(crate) use generated::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
pub(crate) use generated::envoy::service::ratelimit::v3::rate_limit_response::DescriptorStatus;
pub(crate) use generated::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};

pub(crate) const SERVICE: &str = "envoy.service.ratelimit.v3.RateLimitService";
pub(crate) const OK: i32 = 1;
pub(crate) const OVER_LIMIT: i32 = 2;
pub(crate) const GRPC: [&str; 2] = ["--grpc", "127.0.0.1:0"];

/// A client with one connection.
pub(crate) struct GrpcClient {
    runtime: Runtime,
    channel: Channel,
}

/// How a client connects over TLS.
pub(crate) struct ClientTls<'a> {
    pub(crate) ca: &'a Path,
    pub(crate) identity: Option<&'a tollgate_testkit::server::Identity>,
}

impl GrpcClient {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let runtime = runtime();
        let endpoint = Endpoint::try_from(format!("http://{address}")).expect("a URL");
        let channel = runtime.block_on(endpoint.connect()).expect("the server accepts connections");
        Self { runtime, channel }
    }

    pub(crate) fn connect_tls(address: SocketAddr, tls: &ClientTls<'_>) -> Result<Self, String> {
        let runtime = runtime();
        let read = |path: &Path| std::fs::read(path).expect("a PEM file");
        let mut config = ClientTlsConfig::new()
            .domain_name("localhost")
            .ca_certificate(Certificate::from_pem(read(tls.ca)));
        if let Some(identity) = tls.identity {
            let pair = (read(&identity.certificate), read(&identity.key));
            config = config.identity(Identity::from_pem(pair.0, pair.1));
        }
        let endpoint = Endpoint::try_from(format!("https://{address}")).expect("a URL");
        let endpoint = endpoint.tls_config(config).expect("a TLS configuration");
        match runtime.block_on(endpoint.connect()) {
            Ok(channel) => Ok(Self { runtime, channel }),
            Err(error) => Err(format!("{error:?}")),
        }
    }

    /// Calls `ShouldRateLimit`.
    pub(crate) fn call(&self, request: RateLimitRequest) -> Result<RateLimitResponse, Status> {
        self.call_with(Request::new(request)).map(Response::into_inner)
    }

    pub(crate) fn call_with(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        self.block_on(should_rate_limit(self.channel(), request))
    }

    /// Calls with one descriptor and returns its status.
    pub(crate) fn status(&self, domain: &str, entries: &[(&str, &str)]) -> DescriptorStatus {
        let mut response = self.call(request(domain, [descriptor(entries)])).expect("a response");
        assert_eq!(response.statuses.len(), 1);
        response.statuses.remove(0)
    }

    /// Returns the code of an error.
    pub(crate) fn error(&self, request: RateLimitRequest) -> (Code, String) {
        let status = self.call(request).expect_err("an error");
        (status.code(), status.message().to_owned())
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }
}

pub(crate) async fn should_rate_limit(
    channel: Channel,
    request: Request<RateLimitRequest>,
) -> Result<Response<RateLimitResponse>, Status> {
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let codec: ProstCodec<RateLimitRequest, RateLimitResponse> = ProstCodec::default();
    grpc.unary(request, PathAndQuery::from_static(SHOULD_RATE_LIMIT), codec).await
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

pub(crate) fn request(
    domain: &str,
    descriptors: impl IntoIterator<Item = RateLimitDescriptor>,
) -> RateLimitRequest {
    RateLimitRequest {
        domain: domain.to_owned(),
        descriptors: descriptors.into_iter().collect(),
        hits_addend: 0,
    }
}

pub(crate) fn descriptor(entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let entry =
        |(key, value): &(&str, &str)| Entry { key: (*key).to_owned(), value: (*value).to_owned() };
    RateLimitDescriptor { entries: entries.iter().map(entry).collect(), ..Default::default() }
}

/// Returns the address of the gRPC listener from the log.
pub(crate) fn grpc_address(service: &Service) -> SocketAddr {
    let find = || {
        let log = service.log();
        let lines = log.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        lines
            .filter_map(|line| line.strip_prefix("listening on grpc"))
            .filter_map(|line| line.split_once("://")?.1.parse().ok())
            .next()
    };
    eventually("the gRPC listener", || find().is_some());
    find().expect("just seen")
}

/// Starts a service with a gRPC listener and connects to it.
pub(crate) fn start(args: &[&str]) -> (Service, GrpcClient) {
    let service = Service::start(&[&GRPC, args].concat());
    let client = GrpcClient::connect(grpc_address(&service));
    (service, client)
}

/// Calls with this deadline. Unlike [`GrpcClient`], the client does not enforce the deadline itself.
pub(crate) async fn call_with_deadline(
    connection: DirectConnection,
    request: RateLimitRequest,
    deadline: Duration,
) -> Result<RateLimitResponse, Status> {
    let mut request = Request::new(request);
    let value = format!("{}m", deadline.as_millis()).parse().expect("metadata");
    request.metadata_mut().insert("grpc-timeout", value);
    let mut grpc = Grpc::with_origin(connection, Uri::from_static("http://tollgate"));
    let codec: ProstCodec<RateLimitRequest, RateLimitResponse> = ProstCodec::default();
    let response = grpc.unary(request, PathAndQuery::from_static(SHOULD_RATE_LIMIT), codec).await;
    response.map(Response::into_inner)
}

/// An HTTP/2 connection without the layers of tonic's client.
#[derive(Clone)]
pub(crate) struct DirectConnection(http2::SendRequest<Body>);

impl DirectConnection {
    /// Connects; must run in the runtime of the calls.
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server accepts connections");
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (sender, connection) = handshake.await.expect("an HTTP/2 connection");
        tokio::spawn(connection);
        Self(sender)
    }
}

impl tower_service::Service<hyper::Request<Body>> for DirectConnection {
    type Response = hyper::Response<hyper::body::Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: hyper::Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
