//! Logging, and OpenTelemetry traces.
//!
//! Traces need the `otel` build feature. `otel` and `disabled` export the same names, so callers need no `cfg`; the
//! functions of `disabled` do nothing.

#[cfg(not(feature = "otel"))]
mod disabled;
mod log;
#[cfg(feature = "otel")]
mod otel;

use std::net::IpAddr;

#[cfg(not(feature = "otel"))]
pub use disabled::Span;
#[cfg(not(feature = "otel"))]
pub(crate) use disabled::Traces;
pub(crate) use log::log_to_stderr;
#[cfg(feature = "otel")]
pub use otel::Span;
#[cfg(feature = "otel")]
pub(crate) use otel::Traces;

/// The purpose of a call, which decides whether it is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// Calls by operators: rare, and always worth a span.
    Management,
    /// A decision, on the hot path.
    Decision,
    /// Probes, scrapes, pages and unknown calls.
    Other,
}

/// What is known about a call when its span starts.
#[derive(Debug)]
#[cfg_attr(not(feature = "otel"), expect(dead_code, reason = "read by traces only"))]
pub(crate) struct SpanStart<'a> {
    pub(crate) kind: CallKind,
    pub(crate) method: &'static str,
    /// The route, if it is known before routing. Spans contain no path, which may contain client names.
    pub(crate) route: Option<&'static str>,
    pub(crate) peer: IpAddr,
    /// The trace context of the caller, in the format of the W3C headers of these names.
    pub(crate) traceparent: Option<&'a str>,
    pub(crate) tracestate: Option<&'a str>,
}

/// What is known about a call when its span ends.
#[derive(Debug)]
#[cfg_attr(not(feature = "otel"), expect(dead_code, reason = "read by traces only"))]
pub(crate) struct SpanEnd<'a> {
    pub(crate) route: Option<&'a str>,
    /// The HTTP status code.
    pub(crate) status: u16,
}
