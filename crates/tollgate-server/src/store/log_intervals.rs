//! Minimum times between log lines about the store.

use std::time::{Duration, Instant};

/// Minimum time between two log lines about the same condition.
pub(crate) const LOG_INTERVAL: Duration = Duration::from_secs(300);

/// Minimum time between two log lines about a Redis that rejects this node: someone must fix a setting.
pub(crate) const REJECTION_INTERVAL: Duration = Duration::from_secs(60);

/// Minimum time between two log lines about shed requests.
pub(crate) const SHED_LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Failed calls are logged only after this time, together with those that follow them.
pub(crate) const FAILURE_GRACE: Duration = Duration::from_secs(2);

/// Failed calls without a success since are logged after this time. A node with few requests needs some time until it knows
/// that the store is lost.
pub(crate) const LASTING_FAILURES: Duration = Duration::from_secs(60);

/// An outage within [`LOG_INTERVAL`] of the last logged one is logged only when it has lasted this long. So a flapping
/// store does not fill the log, and a lasting outage is always logged.
pub(crate) const LASTING_OUTAGE: Duration = Duration::from_secs(60);

/// Returns true if the last line about a condition is [`LOG_INTERVAL`] old, or there is none.
pub(crate) fn is_due(logged: Option<Instant>, now: Instant) -> bool {
    logged.is_none_or(|at| now.duration_since(at) >= LOG_INTERVAL)
}
