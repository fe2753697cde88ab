//! What a service tells of itself while it runs: a log, and traces where they are asked for.
//!
//! Traces are a feature of the build. Callers do not see whether they are in it: `otel` and `disabled` have the
//! same names, and in the latter they do nothing.

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

/// Which decisions are traced, where anything is. A span costs more than many a decision does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TracedDecisions {
    /// Those whose caller traces them too, as its `traceparent` says.
    CallerSampled,
    /// All of them.
    All,
}

impl TracedDecisions {
    /// What the setting says, or by default.
    pub(crate) const fn of(all: Option<bool>) -> Self {
        match all {
            Some(true) => Self::All,
            Some(false) | None => Self::CallerSampled,
        }
    }
}
