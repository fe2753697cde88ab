//! Log lines and event texts about outages.

use std::time::{Duration, Instant};

use parking_lot::MutexGuard;
use tollgate::Outage;
use tracing::{error, info};

use super::{OutageLog, WatchState};
use crate::store::log_intervals::REJECTION_INTERVAL;

/// Logs that Redis rejects this node, once per interval.
pub(super) fn log_rejection(mut state: MutexGuard<'_, WatchState>, outage: Duration, now: Instant) {
    let logged = state.rejection_logged;
    if logged.is_some_and(|at| now.duration_since(at) < REJECTION_INTERVAL) {
        return;
    }
    state.rejection_logged = Some(now);
    state.outage = state.outage.map(|(start, _)| (start, OutageLog::Logged));
    let error = state.last_error.clone().unwrap_or_default();
    drop(state);
    error!(
        error,
        outage_s = outage.as_secs(),
        "Redis rejects this node: degraded mode continues until the password, certificate or server is corrected"
    );
}

/// Returns the text of the event when the store is back.
pub(super) fn restored_text(outage: &Outage) -> String {
    let Outage { lasted, admitted, refused, .. } = outage;
    let seconds = lasted.as_secs_f64();
    format!(
        "after {seconds:.1} s: {admitted} requests admitted and {refused} refused without it; circuit breaker closed"
    )
}

pub(super) fn log_restored(outage: &Outage) {
    let outage_ms = u64::try_from(outage.lasted.as_millis()).unwrap_or(u64::MAX);
    let Outage { admitted, refused, keys_replayed, keys_dropped, .. } = outage;
    info!(
        outage_ms,
        admitted,
        refused,
        keys_replayed,
        keys_dropped,
        "store restored: admissions of the outage are debited, and the store decides again"
    );
}
