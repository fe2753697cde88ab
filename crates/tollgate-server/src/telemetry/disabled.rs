//! Placeholders for builds without traces.

use std::net::SocketAddr;

use axum::Router;
use hyper::{Request, Response};
use tollgate::Outcome;
use tracing::warn;

use super::TracedDecisions;
use crate::settings::Environment;

/// Environment variables that request traces.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// Placeholder for the trace exporter.
#[derive(Debug, Clone)]
pub(crate) struct Traces;

/// Placeholder for a request's span.
#[derive(Debug)]
pub(crate) struct Span;

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

    pub(crate) const fn start_span<B>(&self, _request: &Request<B>, _peer: SocketAddr) -> Span {
        Span
    }

    pub(crate) const fn record_routes(&self, router: Router) -> Router {
        router
    }

    pub(crate) const fn shutdown(&self) {}
}

impl Span {
    pub(crate) const fn none() -> Self {
        Self
    }

    pub(crate) const fn decided(&mut self, _outcome: &Outcome<'_, '_>) {}

    pub(crate) const fn end<B>(self, _response: &Response<B>) {}
}
