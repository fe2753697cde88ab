//! Whether the reports of this node succeed, and what its store reports with them: log lines and warnings.

use std::mem;
use std::time::{Duration, Instant};

use tollgate::StoreError;
use tracing::{info, warn};

use crate::node::NodeContext;

/// How long reading overrides may fail before a warning.
const OVERRIDES_GRACE: Duration = Duration::from_secs(5);
/// Number of reports between two checks of the eviction policy of Redis.
const EVICTION_CHECK_REPORTS: u32 = 10;

/// Results of the last reports.
#[derive(Debug, Default)]
pub(super) struct ReportHealth {
    /// Reports failed in a row.
    failures: u32,
    /// Whether failing reports were logged.
    is_failure_logged: bool,
    /// Start of the current period in which reading overrides fails although reports succeed.
    overrides_failing_since: Option<Instant>,
    /// Successful reports until the next check of the eviction policy.
    reports_until_eviction_check: u32,
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
            learn_server(context).await;
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

    /// Logs when reports start to fail and when they succeed again. A single failure is not logged, nor is a failure
    /// in degraded mode, which has its own log lines.
    fn log(&mut self, context: &NodeContext, error: Option<&StoreError>) {
        self.failures = if error.is_none() { 0 } else { self.failures.saturating_add(1) };
        match error {
            None if mem::take(&mut self.is_failure_logged) => info!("node reports succeed again"),
            Some(error)
                if self.failures > 1 && !self.is_failure_logged && !context.is_degraded() =>
            {
                self.is_failure_logged = true;
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

    /// Updates the eviction warning; the setting of Redis may change while it runs.
    async fn check_eviction(&mut self, context: &NodeContext) {
        if self.reports_until_eviction_check > 0 {
            self.reports_until_eviction_check -= 1;
            return;
        }
        self.reports_until_eviction_check = EVICTION_CHECK_REPORTS - 1;
        if let Some(redis) = context.backend().redis()
            && let Ok(policy) = redis.eviction_policy().await
        {
            context.warnings().set_eviction(policy.as_deref());
        }
    }
}

/// Finds out the software and version of Redis, if it was unavailable at the start.
async fn learn_server(context: &NodeContext) {
    if let Some(redis) = context.backend().redis()
        && !context.store_info().is_server_known()
        && let Ok(server) = redis.connect().await
    {
        context.store_info().set_server(server.as_ref());
    }
}
