//! Whether the reports of this node succeed, and what its store reports with them: log lines and warnings.

use std::mem;
use std::time::{Duration, Instant};

use tokio::time::timeout;
use tollgate::StoreError;
use tracing::{info, warn};

use crate::node::NodeContext;
use crate::store::log_intervals::is_due;

/// How long reading overrides may fail before a warning.
const OVERRIDES_GRACE: Duration = Duration::from_secs(5);
/// Number of successful reports from one check of Redis to the next.
const CHECK_REPORTS: u32 = 10;
/// Time limit of a check of Redis: one that does not end, for example because a cluster node is lost, delays the next
/// report by no more than this.
const CHECK_TIMEOUT: Duration = Duration::from_millis(500);

/// Results of the last reports.
#[derive(Debug, Default)]
pub(super) struct ReportHealth {
    failure_log: FailureLog,
    /// Start of the current period in which reading overrides fails although reports succeed.
    overrides_failing_since: Option<Instant>,
    server_check: PeriodicCheck,
    eviction_check: PeriodicCheck,
    /// Whether a cluster node without node batching was logged.
    is_batching_logged: bool,
}

impl ReportHealth {
    /// Updates log and warnings after a report.
    pub(super) async fn update(&mut self, context: &NodeContext, error: Option<&StoreError>) {
        self.log(context, error);
        let warning = error.map(|error| format!("node report failed: {error}"));
        context.warnings().set_node_report(warning);
        self.check_overrides(context, error.is_none());
        if error.is_none() {
            context.metrics().store().note_success();
            self.learn_server(context).await;
            self.check_eviction(context).await;
            self.check_batching(context);
        }
    }

    /// Logs once if nodes of the cluster need one call per slot, which costs more.
    fn check_batching(&mut self, context: &NodeContext) {
        let Some(redis) = context.backend().redis().filter(|_| !self.is_batching_logged) else {
            return;
        };
        let nodes = redis.nodes_without_batching();
        if !nodes.is_empty() {
            self.is_batching_logged = true;
            warn!(
                nodes = nodes.join(", "),
                "cluster nodes refuse keys of several slots in one call: each slot gets its own calls, which cost more"
            );
        }
    }

    fn log(&mut self, context: &NodeContext, error: Option<&StoreError>) {
        let now = Instant::now();
        match error {
            None if self.failure_log.note_success() => info!("node reports succeed again"),
            Some(error) if self.failure_log.note_failure(context.is_degraded(), now) => {
                warn!(
                    %error,
                    "node reports fail: other nodes will show this node as down and not count it; retrying"
                );
            }
            _ => {}
        }
    }

    /// Updates the overrides warning. A lost Redis has its own warning. After an outage, overrides get time to be
    /// read again.
    fn check_overrides(&mut self, context: &NodeContext, is_report_ok: bool) {
        let error = context.overrides().last_error().filter(|_| is_report_ok);
        let since =
            error.as_ref().map(|_| self.overrides_failing_since.unwrap_or_else(Instant::now));
        self.overrides_failing_since = since;
        let is_lasting = since.is_some_and(|since| since.elapsed() >= OVERRIDES_GRACE);
        if is_report_ok && (error.is_none() || is_lasting) {
            context.warnings().set_overrides(error);
        }
    }

    /// Finds out the software and version of Redis, if it was unavailable at the start.
    async fn learn_server(&mut self, context: &NodeContext) {
        if let Some(redis) = context.backend().redis()
            && !context.store_info().is_server_known()
            && let Some(server) = self.server_check.run(redis.connect()).await
        {
            context.store_info().set_server(server.as_ref());
        }
    }

    /// Updates the eviction warning; the setting of Redis may change while it runs.
    async fn check_eviction(&mut self, context: &NodeContext) {
        if let Some(redis) = context.backend().redis()
            && let Some(policy) = self.eviction_check.run(redis.eviction_policy()).await
        {
            context.warnings().set_eviction(policy.as_deref());
        }
    }
}

/// Which failures of reports are logged. A single failure is not, nor is a failure in degraded mode, which has its own log
/// lines. A flapping Redis does not fill the log.
#[derive(Debug, Default)]
struct FailureLog {
    /// Reports failed in a row.
    failures: u32,
    /// Whether the current failures were logged.
    is_logged: bool,
    logged_at: Option<Instant>,
}

impl FailureLog {
    /// Records a successful report. Returns whether to log it, because failures were logged before.
    fn note_success(&mut self) -> bool {
        self.failures = 0;
        mem::take(&mut self.is_logged)
    }

    /// Records a failed report. Returns whether to log it.
    fn note_failure(&mut self, is_degraded: bool, now: Instant) -> bool {
        self.failures = self.failures.saturating_add(1);
        let is_new = self.failures > 1 && !self.is_logged && !is_degraded;
        if !is_new || !is_due(self.logged_at, now) {
            return false;
        }
        (self.is_logged, self.logged_at) = (true, Some(now));
        true
    }
}

/// A check of Redis at the first successful report, and then at every tenth.
#[derive(Debug, Default)]
struct PeriodicCheck {
    /// Reports until the next check.
    reports_left: u32,
}

impl PeriodicCheck {
    /// Makes the call if it is due. `None` if it is not, or if the call fails or does not end in time.
    async fn run<T>(&mut self, call: impl Future<Output = Result<T, StoreError>>) -> Option<T> {
        if self.reports_left > 0 {
            self.reports_left -= 1;
            return None;
        }
        self.reports_left = CHECK_REPORTS - 1;
        timeout(CHECK_TIMEOUT, call).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;
    use crate::store::log_intervals::LOG_INTERVAL;

    #[test]
    fn recurring_failures_are_logged_once_per_interval() {
        let (mut log, start) = (FailureLog::default(), Instant::now());
        let mut lines = Vec::new();
        for second in 0..LOG_INTERVAL.as_secs() * 2 {
            let now = start + Duration::from_secs(second);
            let is_logged = match second % 4 {
                0 => log.note_success(),
                _ => log.note_failure(false, now),
            };
            lines.extend(is_logged.then_some(second));
        }
        let interval = LOG_INTERVAL.as_secs();
        assert_eq!(lines, [2, 4, interval + 2, interval + 4], "two failures, then a success");
    }

    #[test]
    fn single_failures_and_those_of_an_outage_are_not_logged() {
        let (mut log, now) = (FailureLog::default(), Instant::now());
        for _ in 0..3 {
            assert!(!log.note_failure(false, now));
            assert!(!log.note_success());
        }
        assert!(![true; 9].iter().any(|is_degraded| log.note_failure(*is_degraded, now)));
        assert!(log.note_failure(false, now), "the outage is over, and reports still fail");
    }

    #[tokio::test]
    async fn check_that_does_not_end_is_stopped_and_rarely_repeated() {
        let (mut check, mut calls) = (PeriodicCheck::default(), 0);
        for _ in 0..=CHECK_REPORTS {
            let call = async {
                calls += 1;
                pending::<Result<(), StoreError>>().await
            };
            assert_eq!(check.run(call).await, None);
        }
        assert_eq!(calls, 2);
    }

    #[tokio::test]
    async fn check_returns_the_reply_when_it_is_due() {
        let mut check = PeriodicCheck::default();
        let mut replies = Vec::new();
        for report in 0..=CHECK_REPORTS {
            replies.extend(check.run(async move { Ok(report) }).await);
        }
        assert_eq!(replies, [0, CHECK_REPORTS]);
    }
}
