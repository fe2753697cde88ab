//! No traces, in a build without them.

use std::net::SocketAddr;

use axum::Router;
use hyper::{Request, Response};
use tollgate::Outcome;
use tracing::warn;

use super::TracedDecisions;
use crate::settings::Environment;

/// What asks for traces, beside the flag.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// Nothing.
#[derive(Debug, Clone)]
pub(crate) struct Traces;

/// Nothing of a request.
#[derive(Debug)]
pub(crate) struct Span;

impl Traces {
    /// Says so to who asks for traces: otherwise they would be looked for in vain.
    pub(crate) fn start(
        environment: &Environment,
        _node_id: &str,
        decisions: TracedDecisions,
    ) -> Self {
        let flag = (decisions == TracedDecisions::All).then_some("--trace-decisions");
        let asked = flag.or(ENDPOINTS.into_iter().find(|name| environment.get(name).is_some()));
        if let Some(by) = asked {
            warn!(by, "no traces: this build is without them (its feature is otel)");
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
