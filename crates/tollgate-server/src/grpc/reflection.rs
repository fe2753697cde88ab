//! `grpc.reflection.v1.ServerReflection`: describes the services to tools such as grpcurl.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use hyper::{Request, Response};
use tonic::body::Body;
use tonic_reflection::server::Builder;
use tower_service::Service as _;

use super::proto::DESCRIPTORS;
use super::request_body::RequestBody;

/// The path prefix of the service.
pub(super) const PREFIX: &str = "/grpc.reflection.v1.ServerReflection/";

type Reply = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// The reflection service, whose type has no name.
#[derive(Clone)]
pub(super) struct Reflection(Arc<dyn Fn(Request<RequestBody>) -> Reply + Send + Sync>);

impl Reflection {
    /// Creates the service; `None` if the committed descriptors are invalid.
    pub(super) fn new() -> Option<Self> {
        let service = Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()
            .ok()?;
        let call = move |request| -> Reply { service.clone().call(request) };
        Some(Self(Arc::new(call)))
    }

    pub(super) fn call(&self, request: Request<RequestBody>) -> Reply {
        (self.0)(request)
    }
}

impl fmt::Debug for Reflection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reflection")
    }
}
