//! Traces over OTLP, where the variables of OpenTelemetry ask for them.
//!
//! Requests never wait for the collector. Spans go into a bounded queue, from which a thread of its own
//! takes them; those that find no place are dropped.

mod attributes;
mod collector;
mod export_target;
mod path_kind;
mod resource;
mod span;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::MatchedPath;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use hyper::Request;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tracing::{info, warn};

use self::collector::Collector;
use self::export_target::{ExportTarget, asked};
pub(crate) use self::span::Span;
use super::TracedDecisions;
use crate::settings::Environment;

/// How long the end of the service waits for the last spans to be taken.
const FLUSH: Duration = Duration::from_secs(2);

/// Where spans go, if they go anywhere.
#[derive(Clone)]
pub(crate) struct Traces(Option<Arc<Exporting>>);

struct Exporting {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    decisions: TracedDecisions,
}

/// Without what is in it: the exporter knows headers that may be secrets.
impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Traces(exported)" } else { "Traces(none)" })
    }
}

impl Traces {
    /// Traces as the environment asks. One that cannot be followed is a warning, and no traces: these
    /// variables are often set for a whole fleet, and no reason for a limiter not to start.
    pub(crate) fn start(
        environment: &Environment,
        node_id: &str,
        decisions: TracedDecisions,
    ) -> Self {
        let asked = match asked(environment) {
            Ok(asked) => asked,
            Err(error) => {
                warn!(%error, "no traces");
                None
            }
        };
        let Some(asked) = asked else { return Self(None) };
        match exporter(&asked) {
            Ok(exporter) => {
                let resource = resource::of(environment, node_id);
                let provider = SdkTracerProvider::builder()
                    .with_batch_exporter(exporter)
                    .with_resource(resource)
                    .build();
                let tracer = provider.tracer("tollgate");
                info!(collector = asked.address(), "traces are exported");
                Self(Some(Arc::new(Exporting { provider, tracer, decisions })))
            }
            Err(error) => {
                warn!(%error, "no traces");
                Self(None)
            }
        }
    }

    /// The span of a request that is to have one.
    pub(crate) fn start_span<B>(&self, request: &Request<B>, peer: SocketAddr) -> Span {
        match &self.0 {
            Some(to) => Span::start(&to.tracer, to.decisions, request, peer),
            None => Span::none(),
        }
    }

    /// The same router, which tells of its answers by which route they came. Paths have names of clients
    /// in them, routes have not.
    pub(crate) fn record_routes(&self, router: Router) -> Router {
        if self.0.is_some() { router.route_layer(from_fn(note_route)) } else { router }
    }

    /// Sends what is left, for a moment; the collector is not worth more of a wait than that.
    pub(crate) fn shutdown(&self) {
        let Some(to) = &self.0 else { return };
        if to.provider.shutdown_with_timeout(FLUSH).is_err() {
            warn!("the last traces were not exported");
        }
    }
}

fn exporter(asked: &ExportTarget) -> Result<SpanExporter, ExporterBuildError> {
    let collector = Collector::new(asked.address().to_owned(), asked.timeout)
        .map_err(|error| ExporterBuildError::InternalFailure(error.to_string()))?;
    SpanExporter::builder()
        .with_http()
        .with_http_client(collector)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(asked.url.to_string())
        .with_timeout(asked.timeout)
        .build()
}

async fn note_route(request: axum::extract::Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    if let Some(route) = route {
        response.extensions_mut().insert(route);
    }
    response
}
