//! Placeholders for builds without traces.

use tollgate::Outcome;
use tracing::warn;

use super::{SpanEnd, SpanStart};
use crate::settings::{Environment, TracedDecisions};

/// Environment variables that request traces.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// Placeholder for the trace exporter.
#[derive(Debug, Clone)]
pub(crate) struct Traces;

/// The span of a request. This build records no spans.
#[derive(Debug)]
pub struct Span(());

impl Traces {
    /// Logs a warning if a setting requests traces, which this build cannot export.
    pub(crate) fn start(
        environment: &Environment,
        _node_id: &str,
        decisions: TracedDecisions,
    ) -> Self {
        let flag = (decisions == TracedDecisions::All).then_some("--trace-decisions");
        let setting = flag.or(ENDPOINTS.into_iter().find(|name| environment.get(name).is_some()));
        if let Some(setting) = setting {
            warn!(setting, "no traces: this build does not include the otel feature");
        }
        Self
    }

    pub(crate) const fn is_enabled(&self) -> bool {
        false
    }

    pub(crate) const fn start_span(&self, _start: &SpanStart<'_>) -> Span {
        Span(())
    }

    pub(crate) const fn shutdown(&self) {}
}

impl Span {
    /// Creates an empty span for a request that is not traced.
    #[must_use]
    pub const fn none() -> Self {
        Self(())
    }

    pub(crate) const fn is_recording(&self) -> bool {
        false
    }

    pub(crate) const fn decided(&mut self, _outcome: &Outcome<'_, '_>) {}

    pub(crate) fn end(self, _end: &SpanEnd<'_>) {}
}
