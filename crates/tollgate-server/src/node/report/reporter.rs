//! The reporter task: once a second it takes a counter snapshot, publishes the node report where nodes share a Redis,
//! and publishes a frame to the live streams.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tollgate::policy::{Policy, Rule, RuleMode};
use tollgate::{Clock, Distributed, SystemClock, Timestamp};
use tollgate_redis::{Directory, OutgoingReport};
use tracing::debug;

use super::{CounterSnapshot, NodeStatus};
use crate::node::NodeContext;
use crate::node::live::Fleet;
use crate::shutdown::StageWaiter;

const SECOND: Duration = Duration::from_secs(1);
/// Average time between two reports of the whole fleet. Nodes of a large fleet report less often, at least once per
/// [`MAX_INTERVAL`].
const FLEET_INTERVAL: Duration = Duration::from_millis(20);
const MAX_INTERVAL: Duration = Duration::from_secs(5);
/// Lifetime of a published status, in report intervals.
const STATUS_LIFETIME_INTERVALS: u32 = 10;

/// State of the reporter between two ticks.
struct Reporter {
    directory: Option<Directory>,
    /// Counters at the last tick.
    ticked: CounterSnapshot,
    /// Counters at the end of the last report that Redis confirmed.
    reported: CounterSnapshot,
    /// A report without a confirmation. It is resent unchanged, so that Redis does not count it twice.
    pending: Option<PendingReport>,
    next_report: Instant,
    /// Redis time of the last report; `None` if it failed.
    reported_at: Option<Timestamp>,
    fleet: Option<Fleet>,
}

/// A report that was sent but not confirmed.
struct PendingReport {
    number: u64,
    text: String,
    /// Counters at the end of the report.
    end: CounterSnapshot,
}

/// Runs until shutdown, then ends all live streams.
pub(crate) async fn run(context: Arc<NodeContext>, mut shutdown: StageWaiter) {
    let mut reporter = Reporter::new(&context);
    let mut next = Instant::now() + SECOND;
    loop {
        tokio::select! {
            () = shutdown.wait() => break,
            () = sleep_until(next) => {}
        }
        reporter.tick(&context).await;
        // Ticks missed during a slow one are skipped.
        next = (next + SECOND).max(Instant::now());
    }
    context.live().close();
}

/// Returns the time between two reports of a node.
fn report_interval(context: &NodeContext) -> Duration {
    let nodes = context.backend().fallback().map_or(1, |store| store.nodes().get());
    (FLEET_INTERVAL * nodes).clamp(SECOND, MAX_INTERVAL)
}

impl Reporter {
    fn new(context: &NodeContext) -> Self {
        let ticked = CounterSnapshot::of(context.metrics());
        Self {
            directory: context.backend().redis().map(tollgate_redis::RedisStore::directory),
            reported: ticked.clone(),
            ticked,
            pending: None,
            next_report: Instant::now(),
            reported_at: None,
            fleet: None,
        }
    }

    async fn tick(&mut self, context: &NodeContext) {
        let now = CounterSnapshot::of(context.metrics());
        let active = context.limiter().active_policy();
        let on_trial = |rule: &str| is_on_trial(active.policy(), rule);
        let report = now.since(&mem::replace(&mut self.ticked, now.clone()), on_trial);
        context.live().add(context.node_id(), SystemClock::new().now(), &report);
        let is_shared = self.directory.is_some() && !context.is_degraded();
        let is_watched = context.live().watchers() > 0;
        if !is_watched {
            self.fleet = None;
        }
        if !is_shared && !is_watched {
            return;
        }
        let status = NodeStatus::of(context);
        if !is_shared {
            self.reported_at = None;
        } else if Instant::now() >= self.next_report {
            self.reported_at = self.send_report(context, now, &status, on_trial).await;
            self.next_report = Instant::now() + report_interval(context) - SECOND / 2;
        }
        if is_watched {
            let fleet = match self.reported_at {
                Some(at) => self.read_fleet(context, at).await,
                None => None,
            };
            context.live().publish(context, &status, fleet);
        }
    }

    /// Sends the counts since the last confirmed report and returns the time of Redis. A failed report loses no counts.
    async fn send_report(
        &mut self,
        context: &NodeContext,
        now: CounterSnapshot,
        status: &NodeStatus,
        on_trial: impl Fn(&str) -> bool,
    ) -> Option<Timestamp> {
        let directory = self.directory.as_ref()?;
        let state = serde_json::to_string(status).ok()?;
        let pending = match self.pending.take() {
            Some(pending) => pending,
            None => PendingReport {
                number: SystemClock::new().now().as_micros(),
                text: serde_json::to_string(&now.since(&self.reported, on_trial)).ok()?,
                end: now,
            },
        };
        let report = OutgoingReport {
            node: context.node_id(),
            number: pending.number,
            figures: &pending.text,
            state: &state,
            lifetime: report_interval(context) * STATUS_LIFETIME_INTERVALS,
        };
        match directory.report(&report).await {
            Ok(at) => {
                self.reported = pending.end;
                Some(at)
            }
            Err(error) => {
                debug!(%error, "node report not sent; retrying");
                self.pending = Some(pending);
                None
            }
        }
    }

    async fn read_fleet(&mut self, context: &NodeContext, now: Timestamp) -> Option<&Fleet> {
        let directory = self.directory.as_ref()?;
        let fleet = self.fleet.take().filter(|fleet| fleet.can_continue(now));
        let mut fleet = fleet.unwrap_or_else(|| Fleet::new(now));
        match fleet.read(directory, now, report_interval(context)).await {
            Ok(()) => {
                self.fleet = Some(fleet);
                self.fleet.as_ref()
            }
            Err(error) => {
                debug!(%error, "node reports not read; the live view shows this node only");
                None
            }
        }
    }
}

fn is_on_trial(policy: &Policy, rule: &str) -> bool {
    let is_evaluated_only = |rule: &Rule| {
        rule.mode() == RuleMode::Shadow
            || !rule.next().is_empty()
            || rule.distributed() == Distributed::Shadow
    };
    policy.rule(rule).is_some_and(is_evaluated_only)
}
