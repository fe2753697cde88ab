//! Counts every store failure, and logs outages without flooding the log.

mod log_lines;

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tollgate::{
    Clock, Decision, LocalDecisions, Source, StoreError, StoreErrorKind, StoreEvent, SystemClock,
    Timestamp,
};
use tracing::warn;

use crate::events::{EventKind, EventLog};

use super::log_intervals::{
    FAILURE_GRACE, LASTING_FAILURES, LASTING_OUTAGE, SHED_LOG_INTERVAL, is_due,
};

use log_lines::{log_rejection, log_restored, restored_text};

/// Failure counts and log state of the store.
#[derive(Debug, Default)]
pub(crate) struct StoreWatch {
    errors: AtomicU64,
    losses: AtomicU64,
    /// Number of shed requests.
    shed: AtomicU64,
    /// Whether a call failed since the last successful one. While false, a success takes no lock.
    is_failing: AtomicBool,
    state: Mutex<WatchState>,
    restored: Notify,
    events: Arc<EventLog>,
}

/// The current loss of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoreLoss {
    pub(crate) since: Timestamp,
    pub(crate) reason: String,
}

/// Whether the current outage was logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutageLog {
    Logged,
    NotLogged,
}

/// The state of the store, and what was already logged about it.
#[derive(Debug, Default)]
struct WatchState {
    /// The last error, unless a call has succeeded since.
    last_error: Option<String>,
    /// Whether the last error was a rejection, such as a wrong password.
    is_rejected: bool,
    rejection_logged: Option<Instant>,
    /// Start of the current outage (breaker open), and whether it was logged.
    outage: Option<(Instant, OutageLog)>,
    /// The current outage, for operators.
    loss: Option<StoreLoss>,
    /// When an outage was last logged.
    outage_logged: Option<Instant>,
    /// Short outages since then that were not logged.
    unlogged_outages: u64,
    /// Failed calls that were not logged.
    failed_calls: u64,
    /// Time of the first of them.
    failing_since: Option<Instant>,
    /// The error of the last of them.
    failed_call_error: Option<String>,
    failed_calls_logged: Option<Instant>,
    incompatible_logged: Option<Instant>,
    /// When shed requests were last logged, and how many there were then.
    shed_logged: Option<(Instant, u64)>,
}

impl WatchState {
    /// Returns whether to log the failed calls. While no call succeeds, they may be the start of an outage, which has its own
    /// line.
    fn are_failures_due(&self, now: Instant) -> bool {
        let grace = match self.last_error {
            Some(_) => LASTING_FAILURES,
            None => FAILURE_GRACE,
        };
        let lasted = self.failing_since.is_some_and(|since| now.duration_since(since) >= grace);
        lasted && is_due(self.failed_calls_logged, now)
    }
}

impl StoreWatch {
    pub(crate) fn new(events: Arc<EventLog>) -> Self {
        Self { events, ..Self::default() }
    }

    /// Returns the events of this node.
    pub(crate) const fn events(&self) -> &Arc<EventLog> {
        &self.events
    }

    /// Handles an event of the fallback store.
    pub(crate) fn on_event(&self, event: StoreEvent<'_>) {
        match event {
            StoreEvent::Failed(error) => self.note_failure(error),
            StoreEvent::Overloaded(error) => self.note_shed(error, Instant::now()),
            StoreEvent::Lost { failures, reason, nodes } => {
                self.losses.fetch_add(1, Ordering::Relaxed);
                self.open_loss(reason, "circuit breaker open");
                let now = Instant::now();
                if let Some(unlogged_outages) = self.note_loss(now) {
                    self.note_rejection_logged(reason, now);
                    warn!(
                        error = %reason, failures, nodes, unlogged_outages,
                        "store lost: degraded mode, this node decides by its share of each limit or by \
                         on_store_loss; check that Redis is up and reachable"
                    );
                }
            }
            StoreEvent::Restored(outage) => {
                self.note_success();
                self.restored.notify_one();
                self.events.add(EventKind::StoreBack, &restored_text(&outage));
                let lost = {
                    let mut state = self.state.lock();
                    state.loss = None;
                    state.outage.take()
                };
                if lost.is_none_or(|(_, log)| log == OutageLog::Logged) {
                    log_restored(&outage);
                }
            }
            _ => {}
        }
    }

    /// Records the start of an outage. If it should be logged now, returns the number of outages not logged before.
    fn note_loss(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock();
        (state.failed_calls, state.failing_since) = (0, None);
        if !is_due(state.outage_logged, now) {
            state.unlogged_outages += 1;
            state.outage = Some((now, OutageLog::NotLogged));
            return None;
        }
        (state.outage, state.outage_logged) = (Some((now, OutageLog::Logged)), Some(now));
        Some(mem::take(&mut state.unlogged_outages))
    }

    /// Records that the store is unavailable at the start. The caller logs it.
    pub(crate) fn note_loss_at_start(&self, error: &StoreError) {
        self.note_failure(error);
        self.losses.fetch_add(1, Ordering::Relaxed);
        self.open_loss(error, "started without Redis, circuit breaker open");
        let _ = self.note_loss(Instant::now());
    }

    /// Records the start of an outage for operators.
    fn open_loss(&self, reason: &StoreError, state: &str) {
        let loss = StoreLoss { since: SystemClock::new().now(), reason: reason.to_string() };
        self.state.lock().loss = Some(loss);
        self.events.add(EventKind::StoreLost, &format!("{state}: {reason}"));
    }

    /// Returns the current loss of the store.
    pub(crate) fn loss(&self) -> Option<StoreLoss> {
        self.state.lock().loss.clone()
    }

    /// Records that the log has this error, if it is a rejection.
    fn note_rejection_logged(&self, error: &StoreError, now: Instant) {
        if error.kind() == StoreErrorKind::Misconfigured {
            self.state.lock().rejection_logged = Some(now);
        }
    }

    /// Waits until the store is restored. An event without a waiter ends the next wait.
    pub(crate) async fn restored(&self) {
        self.restored.notified().await;
    }

    /// Returns the last error, unless a call has succeeded since.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.state.lock().last_error.clone()
    }

    /// Records a request that was shed, because too many calls wait for the store. The store itself works.
    fn note_shed(&self, error: &StoreError, now: Instant) {
        let shed = self.shed.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let mut state = self.state.lock();
        let (is_due, before) = match state.shed_logged {
            Some((at, before)) => (now.duration_since(at) >= SHED_LOG_INTERVAL, before),
            None => (true, 0),
        };
        if !is_due {
            return;
        }
        state.shed_logged = Some((now, shed));
        drop(state);
        warn!(
            %error,
            shed = shed.saturating_sub(before),
            "requests are shed: this node receives more requests than Redis decides in time; reduce the load or use a \
             faster Redis or a cluster. Further ones are counted in tollgate_shed_total and logged once a minute"
        );
    }

    /// Records a failed store call.
    pub(crate) fn note_failure(&self, error: &StoreError) {
        if error.kind() == StoreErrorKind::Overloaded {
            self.note_shed(error, Instant::now());
            return;
        }
        self.errors.fetch_add(1, Ordering::Relaxed);
        self.is_failing.store(true, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.last_error = Some(error.to_string());
        state.is_rejected = error.kind() == StoreErrorKind::Misconfigured;
        if error.kind() != StoreErrorKind::Incompatible {
            // Failed probes during an outage do not count: the outage has its own log lines.
            if state.outage.is_none() {
                state.failed_calls += 1;
                state.failed_call_error = Some(error.to_string());
                state.failing_since.get_or_insert_with(Instant::now);
            }
        } else if is_due(state.incompatible_logged, Instant::now()) {
            state.incompatible_logged = Some(Instant::now());
            drop(state);
            warn!(
                %error,
                "the store cannot read a key; this node decides it locally. Further errors of this kind are only \
                 counted in rate_limit_backend_errors_total"
            );
        }
    }

    /// Records a success if the store made this decision.
    pub(crate) fn note_decision(&self, decision: &Decision<'_>) {
        let is_by_store = decision.source() == Source::Store && !decision.statuses().is_empty();
        if self.is_failing.load(Ordering::Relaxed) && is_by_store {
            self.note_success();
        }
    }

    /// Records a successful store call.
    pub(crate) fn note_success(&self) {
        if self.is_failing.swap(false, Ordering::Relaxed) {
            self.state.lock().last_error = None;
        }
    }

    /// Ends the outage, whatever the last event was, because the breaker is closed.
    pub(crate) fn note_breaker_closed(&self) {
        let mut state = self.state.lock();
        (state.outage, state.loss) = (None, None);
    }

    /// Logs conditions that last. Call it periodically.
    pub(crate) fn log_ongoing(&self, decisions: LocalDecisions, now: Instant) {
        let mut state = self.state.lock();
        if let Some((start, log)) = state.outage {
            let error = state.last_error.clone().unwrap_or_default();
            let outage = now.duration_since(start);
            if state.is_rejected {
                return log_rejection(state, outage, now);
            }
            let is_overdue = log == OutageLog::NotLogged && outage >= LASTING_OUTAGE;
            if is_overdue || is_due(state.outage_logged, now) {
                (state.outage, state.outage_logged) = (Some((start, OutageLog::Logged)), Some(now));
                let unlogged_outages = mem::take(&mut state.unlogged_outages);
                drop(state);
                let outage_s = outage.as_secs();
                let LocalDecisions { admitted, refused, .. } = decisions;
                warn!(
                    error,
                    outage_s,
                    admitted,
                    refused,
                    unlogged_outages,
                    "store still lost: degraded mode continues; check that Redis is up and reachable"
                );
            }
        } else if state.are_failures_due(now) {
            let failed_calls = mem::take(&mut state.failed_calls);
            let error = state.failed_call_error.take().unwrap_or_default();
            (state.failing_since, state.failed_calls_logged) = (None, Some(now));
            drop(state);
            warn!(
                error,
                failed_calls,
                "some store calls failed; this node decided those checks without the store"
            );
        }
    }

    /// Returns the number of failed store calls.
    pub(crate) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// Returns the number of shed requests.
    pub(crate) fn shed(&self) -> u64 {
        self.shed.load(Ordering::Relaxed)
    }

    /// Returns how often the breaker opened.
    pub(crate) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }

    /// Returns the warning for operators; `None` while the store works.
    pub(crate) fn warning(&self) -> Option<String> {
        let state = self.state.lock();
        let error = state.last_error.as_deref();
        match state.outage {
            Some(_) => Some(format!(
                "store lost, degraded mode: {}",
                error.unwrap_or("no successful probe yet")
            )),
            None => error.map(|error| format!("store call failed: {error}")),
        }
    }
}

#[cfg(test)]
mod tests;
