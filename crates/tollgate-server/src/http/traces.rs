//! What spans contain of an HTTP request: method, route and status, and whether its path is traced.

use std::net::IpAddr;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderValue};

use crate::telemetry::{CallKind, Span, SpanEnd, SpanStart, Traces};

/// The paths of decision calls. Each path is its route.
const DECISION_PATHS: [&str; 11] = [
    "/check",
    "/peek",
    "/refund",
    "/explain",
    "/check/batch",
    "/reserve",
    "/settle",
    "/release",
    "/renew",
    "/auth",
    "/auth/nginx",
];

/// Starts the span of a request; an empty span if the request is not traced.
#[inline]
pub(super) fn start_span<B>(traces: &Traces, request: &hyper::Request<B>, peer: IpAddr) -> Span {
    if !traces.is_enabled() {
        return Span::none();
    }
    let (kind, route) = classify(request.uri().path());
    traces.start_span(&SpanStart {
        kind,
        method: method_name(request.method()),
        route,
        peer,
        traceparent: header(request.headers(), "traceparent"),
        tracestate: header(request.headers(), "tracestate"),
    })
}

/// Ends the span of a request with its response.
#[inline]
pub(super) fn end_span<B>(span: Span, response: &hyper::Response<B>) {
    if !span.is_recording() {
        return;
    }
    let matched = response.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    span.end(&SpanEnd { route: matched, status: response.status().as_u16() });
}

/// Adds a layer that puts the matched route into each response's extensions. Spans contain the route because paths may
/// contain client names.
pub(super) fn record_routes(traces: &Traces, router: Router) -> Router {
    if traces.is_enabled() { router.route_layer(from_fn(record_route)) } else { router }
}

async fn record_route(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    if let Some(route) = route {
        response.extensions_mut().insert(route);
    }
    response
}

/// Returns the purpose of a path, and its route if it is known without the router.
fn classify(path: &str) -> (CallKind, Option<&'static str>) {
    if let Some(route) = DECISION_PATHS.into_iter().find(|route| *route == path) {
        return (CallKind::Decision, Some(route));
    }
    match path.starts_with("/api/") || path.starts_with("/admin/") {
        true => (CallKind::Management, None),
        false => (CallKind::Other, None),
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(HeaderValue::to_str)?.ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classifies_paths() {
        for (path, kind) in [
            ("/check", CallKind::Decision),
            ("/check/batch", CallKind::Decision),
            ("/renew", CallKind::Decision),
            ("/reserve", CallKind::Decision),
            ("/auth/nginx", CallKind::Decision),
            ("/api/status", CallKind::Management),
            ("/admin/external/clients/c/limits", CallKind::Management),
            ("/healthz", CallKind::Other),
            ("/metrics", CallKind::Other),
            ("/checks", CallKind::Other),
            ("/apis", CallKind::Other),
        ] {
            let route = Some(path).filter(|_| kind == CallKind::Decision);
            assert_eq!(classify(path), (kind, route), "{path}");
        }
    }
}
