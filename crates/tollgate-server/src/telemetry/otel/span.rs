//! The span of one request: how it was asked, by which route, and how it was answered. Never whom it was
//! about: no path, no query, no header and no key goes into it.

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

/// A span that is open, if the request has one. Boxed, since most have none.
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
    /// For a request that has none.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    pub(super) fn start<B>(
        tracer: &SdkTracer,
        decisions: TracedDecisions,
        request: &Request<B>,
        peer: SocketAddr,
    ) -> Self {
        let kind = PathKind::in_path(request.uri().path());
        let parent = parent(request.headers());
        let is_asked = parent.as_ref().is_some_and(|it| it.span().span_context().is_sampled());
        if !is_asked && !kind.is_traced(decisions) {
            return Self(None);
        }
        let (method, route) = (name_of_method(request.method()), kind.route());
        let span = tracer
            .span_builder(name_of_span(method, route))
            .with_kind(SpanKind::Server)
            .with_attributes([
                KeyValue::new(attributes::METHOD, method),
                KeyValue::new(attributes::CLIENT, peer.ip().to_canonical().to_string()),
            ])
            .start_with_context(tracer, &parent.unwrap_or_default());
        // What the sampler leaves out needs no place until its end.
        Self(span.is_recording().then(|| Box::new(Open { span, method, route })))
    }

    /// How the request was decided, and by which rule.
    pub(crate) fn decided(&mut self, outcome: &Outcome<'_, '_>) {
        let Some(open) = &mut self.0 else { return };
        let verdict = verdict_name(outcome.decision.verdict());
        open.span.set_attribute(KeyValue::new(attributes::VERDICT, verdict));
        open.span.set_attribute(KeyValue::new(attributes::RULE, outcome.rule().to_owned()));
    }

    /// Ends with the answer.
    pub(crate) fn end<B>(self, response: &Response<B>) {
        let Some(mut open) = self.0 else { return };
        let status = response.status();
        let routed = response.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        // A deciding path is not served where only operators are.
        let route = routed.or(open.route.filter(|_| status != hyper::StatusCode::NOT_FOUND));
        if let Some(route) = route {
            open.span.set_attribute(KeyValue::new(attributes::ROUTE, route.to_owned()));
        }
        open.span.update_name(name_of_span(open.method, route));
        open.span.set_attribute(KeyValue::new(attributes::STATUS, i64::from(status.as_u16())));
        if status.is_server_error() {
            open.span.set_attribute(KeyValue::new(attributes::ERROR, status.as_str().to_owned()));
            open.span.set_status(Status::error(""));
        }
        open.span.end();
    }
}

/// What the caller says of its own span, if it says anything that can be understood.
fn parent(headers: &HeaderMap) -> Option<Context> {
    headers.get("traceparent")?;
    let said = TraceContextPropagator::new()
        .extract_with_context(&Context::new(), &HeaderExtractor(headers));
    said.has_active_span().then_some(said)
}

fn name_of_span(method: &str, route: Option<&str>) -> String {
    match route {
        Some(route) => format!("{method} {route}"),
        None => method.to_owned(),
    }
}

/// A method that there is; others are whatever a client has typed.
fn name_of_method(method: &Method) -> &'static str {
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
