//! Traces over OTLP, enabled by the `OTEL_*` environment variables.
//!
//! Requests never wait for the collector: a separate thread exports spans from a bounded queue. Spans that do not
//! fit are dropped.

mod attributes;
mod collector;
mod export_target;
mod resource;
mod span;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tracing::{info, warn};

use self::collector::Collector;
use self::export_target::ExportTarget;
pub use self::span::Span;
use super::SpanStart;
use crate::settings::{Environment, TracedDecisions};

/// How long shutdown waits for the last spans to be exported.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The trace exporter, if traces are enabled.
#[derive(Clone)]
pub(crate) struct Traces(Option<Arc<Exporter>>);

struct Exporter {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    decisions: TracedDecisions,
}

/// Shows no content: the exporter's headers may be secret.
impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Traces(exported)" } else { "Traces(none)" })
    }
}

impl Traces {
    /// Starts exporting if the environment enables traces. An invalid variable only logs a warning and disables
    /// traces: these variables are often set for a whole fleet, and must not stop the limiter from starting.
    pub(crate) fn start(
        environment: &Environment,
        node_id: &str,
        decisions: TracedDecisions,
    ) -> Self {
        let target = match ExportTarget::from_environment(environment) {
            Ok(target) => target,
            Err(error) => {
                warn!(%error, "no traces: invalid setting");
                None
            }
        };
        let Some(target) = target else { return Self(None) };
        match span_exporter(&target) {
            Ok(exporter) => {
                let resource = resource::build(environment, node_id);
                let provider = SdkTracerProvider::builder()
                    .with_batch_exporter(exporter)
                    .with_resource(resource)
                    .build();
                let tracer = provider.tracer("tollgate");
                info!(collector = target.address(), "exporting traces");
                Self(Some(Arc::new(Exporter { provider, tracer, decisions })))
            }
            Err(error) => {
                warn!(%error, "no traces: the exporter failed to start");
                Self(None)
            }
        }
    }

    /// Starts the span of a request; an empty span if the request is not traced.
    pub(crate) fn start_span(&self, start: &SpanStart<'_>) -> Span {
        match &self.0 {
            Some(exporter) => Span::start(&exporter.tracer, exporter.decisions, start),
            None => Span::none(),
        }
    }

    /// Returns whether spans are exported.
    pub(crate) const fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Exports the remaining spans, for at most [`FLUSH_TIMEOUT`].
    pub(crate) fn shutdown(&self) {
        let Some(exporter) = &self.0 else { return };
        if exporter.provider.shutdown_with_timeout(FLUSH_TIMEOUT).is_err() {
            warn!("the last spans were not exported: the collector did not accept them in time");
        }
    }
}

fn span_exporter(target: &ExportTarget) -> Result<SpanExporter, ExporterBuildError> {
    let collector = Collector::new(target.address().to_owned(), target.timeout)
        .map_err(|error| ExporterBuildError::InternalFailure(error.to_string()))?;
    SpanExporter::builder()
        .with_http()
        .with_http_client(collector)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(target.url.to_string())
        .with_timeout(target.timeout)
        .build()
}
