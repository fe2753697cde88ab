//! The span of one request: method, route, verdict and response status. It contains no path, query, header or key,
//! which may identify a client.

use std::fmt;
use std::net::SocketAddr;

use axum::extract::MatchedPath;
use hyper::header::HeaderMap;
use hyper::{Method, Request, Response};
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{Span as _, SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, Span as SdkSpan};
use tollgate::Outcome;

use super::TracedDecisions;
use super::attributes;
use super::path_kind::PathKind;
use crate::wire::decision::verdict_name;

/// The open span of a request, if it is traced. Boxed because most requests have none.
pub(crate) struct Span(Option<Box<Open>>);

struct Open {
    span: SdkSpan,
    method: &'static str,
    route: Option<&'static str>,
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Span(open)" } else { "Span(none)" })
    }
}

impl Span {
    /// Creates an empty span for a request that is not traced.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    pub(super) fn start<B>(
        tracer: &SdkTracer,
        decisions: TracedDecisions,
        request: &Request<B>,
        peer: SocketAddr,
    ) -> Self {
        let kind = PathKind::of(request.uri().path());
        let parent = parent_context(request.headers());
        let is_sampled =
            parent.as_ref().is_some_and(|parent| parent.span().span_context().is_sampled());
        if !is_sampled && !kind.is_traced(decisions) {
            return Self(None);
        }
        let (method, route) = (method_name(request.method()), kind.route());
        let span = tracer
            .span_builder(span_name(method, route))
            .with_kind(SpanKind::Server)
            .with_attributes([
                KeyValue::new(attributes::METHOD, method),
                KeyValue::new(attributes::CLIENT, peer.ip().to_canonical().to_string()),
            ])
            .start_with_context(tracer, &parent.unwrap_or_default());
        // A span that the sampler dropped need not be kept.
        Self(span.is_recording().then(|| Box::new(Open { span, method, route })))
    }

    /// Records the verdict and the rule.
    pub(crate) fn decided(&mut self, outcome: &Outcome<'_, '_>) {
        let Some(open) = &mut self.0 else { return };
        let verdict = verdict_name(outcome.decision.verdict());
        open.span.set_attribute(KeyValue::new(attributes::VERDICT, verdict));
        open.span.set_attribute(KeyValue::new(attributes::RULE, outcome.rule().to_owned()));
    }

    /// Ends the span with the response.
    pub(crate) fn end<B>(self, response: &Response<B>) {
        let Some(mut open) = self.0 else { return };
        let status = response.status();
        let matched = response.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        // The --admin listener does not serve decision paths: there they are no route.
        let route = matched.or(open.route.filter(|_| status != hyper::StatusCode::NOT_FOUND));
        if let Some(route) = route {
            open.span.set_attribute(KeyValue::new(attributes::ROUTE, route.to_owned()));
        }
        open.span.update_name(span_name(open.method, route));
        open.span.set_attribute(KeyValue::new(attributes::STATUS, i64::from(status.as_u16())));
        if status.is_server_error() {
            open.span.set_attribute(KeyValue::new(attributes::ERROR, status.as_str().to_owned()));
            open.span.set_status(Status::error(""));
        }
        open.span.end();
    }
}

/// Returns the caller's trace context from a valid `traceparent` header.
fn parent_context(headers: &HeaderMap) -> Option<Context> {
    headers.get("traceparent")?;
    let context = TraceContextPropagator::new()
        .extract_with_context(&Context::new(), &HeaderExtractor(headers));
    context.has_active_span().then_some(context)
}

fn span_name(method: &str, route: Option<&str>) -> String {
    match route {
        Some(route) => format!("{method} {route}"),
        None => method.to_owned(),
    }
}

/// Returns the name of a standard method; `_OTHER` for anything else, which the client chooses freely.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::TRACE => "TRACE",
        Method::CONNECT => "CONNECT",
        _ => "_OTHER",
    }
}
