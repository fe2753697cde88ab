//! Logging, and OpenTelemetry traces.
//!
//! Traces need the `otel` build feature. `otel` and `disabled` export the same names, so callers need no `cfg`; the
//! functions of `disabled` do nothing.

#[cfg(not(feature = "otel"))]
mod disabled;
mod log;
#[cfg(feature = "otel")]
mod otel;

#[cfg(not(feature = "otel"))]
pub(crate) use disabled::{Span, Traces};
pub(crate) use log::log_to_stderr;
#[cfg(feature = "otel")]
pub(crate) use otel::{Span, Traces};

/// Which decisions get a span when traces are enabled. A span often costs more than the decision itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TracedDecisions {
    /// Only those whose caller sampled the request (`traceparent`).
    CallerSampled,
    /// Every decision.
    All,
}

impl TracedDecisions {
    /// Creates it from `--trace-decisions`; the default is `CallerSampled`.
    pub(crate) const fn of(all: Option<bool>) -> Self {
        match all {
            Some(true) => Self::All,
            Some(false) | None => Self::CallerSampled,
        }
    }
}
