//! The span of one request: method, route, verdict and response status. It contains no path, query, header or key,
//! which may identify a client.

use std::fmt;

use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::{Span as _, SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, Span as SdkSpan};
use tollgate::Outcome;

use super::attributes;
use crate::settings::TracedDecisions;
use crate::telemetry::{CallKind, SpanEnd, SpanStart};
use crate::wire::decision::verdict_name;

/// The open span of a request, if it is traced. Boxed because most requests have none.
pub struct Span(Option<Box<Open>>);

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
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    pub(super) fn start(
        tracer: &SdkTracer,
        decisions: TracedDecisions,
        start: &SpanStart<'_>,
    ) -> Self {
        let parent = parent_context(start);
        let is_sampled =
            parent.as_ref().is_some_and(|parent| parent.span().span_context().is_sampled());
        if !is_sampled && !is_traced(start.kind, decisions) {
            return Self(None);
        }
        let (method, route) = (start.method, start.route);
        let span = tracer
            .span_builder(span_name(method, route))
            .with_kind(SpanKind::Server)
            .with_attributes([
                KeyValue::new(attributes::METHOD, method),
                KeyValue::new(attributes::CLIENT, start.peer.to_canonical().to_string()),
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

    /// Returns whether the request is traced.
    pub(crate) const fn is_recording(&self) -> bool {
        self.0.is_some()
    }

    /// Ends the span with the response.
    pub(crate) fn end(self, end: &SpanEnd<'_>) {
        let Some(mut open) = self.0 else { return };
        let status = end.status;
        // The --admin listener does not serve decision paths: there they are no route.
        let route = end.route.or(open.route.filter(|_| status != 404));
        if let Some(route) = route {
            open.span.set_attribute(KeyValue::new(attributes::ROUTE, route.to_owned()));
        }
        open.span.update_name(span_name(open.method, route));
        open.span.set_attribute(KeyValue::new(attributes::STATUS, i64::from(status)));
        if status >= 500 {
            open.span.set_attribute(KeyValue::new(attributes::ERROR, status.to_string()));
            open.span.set_status(Status::error(""));
        }
        open.span.end();
    }
}

/// Returns whether a call gets a span even if the caller did not sample it.
fn is_traced(kind: CallKind, decisions: TracedDecisions) -> bool {
    match kind {
        CallKind::Management => true,
        CallKind::Decision => decisions == TracedDecisions::All,
        CallKind::Other => false,
    }
}

/// The trace context of a caller, by the names of its headers.
struct CallerContext<'a>(&'a SpanStart<'a>);

impl Extractor for CallerContext<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => self.0.traceparent,
            "tracestate" => self.0.tracestate,
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

/// Returns the caller's trace context, if it is valid.
fn parent_context(start: &SpanStart<'_>) -> Option<Context> {
    start.traceparent?;
    let context =
        TraceContextPropagator::new().extract_with_context(&Context::new(), &CallerContext(start));
    context.has_active_span().then_some(context)
}

fn span_name(method: &str, route: Option<&str>) -> String {
    match route {
        Some(route) => format!("{method} {route}"),
        None => method.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_have_a_span_only_if_all_are_traced() {
        for (kind, by_default, if_all) in [
            (CallKind::Decision, false, true),
            (CallKind::Management, true, true),
            (CallKind::Other, false, false),
        ] {
            assert_eq!(is_traced(kind, TracedDecisions::CallerSampled), by_default, "{kind:?}");
            assert_eq!(is_traced(kind, TracedDecisions::All), if_all, "{kind:?}");
        }
    }
}
