//! What is counted. Decisions are counted here only, through handles resolved when a policy is set.

mod histogram;
mod process;
mod rules;
mod tally;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::policy::Policy;
use tollgate::{
    BreakerState, Decision, Observation, Observer, Occupancy, OnStoreLoss, Source, Timestamp, Verb,
};

use histogram::Histogram;
pub(crate) use rules::Handles;
use rules::Rules;
#[cfg(test)]
pub(crate) use tally::FINE;
pub(crate) use tally::{Part, RuleTally, Tally};
use text::Exposition;

use crate::access::{Guard, Role};
use crate::store_watch::StoreWatch;

/// Counters of one node.
#[derive(Debug)]
pub(crate) struct Metrics {
    exhausted: Exhausted,
    allowed: AtomicU64,
    blocked: AtomicU64,
    duration: Histogram,
    local_exhausted: AtomicU64,
    distributed_exhausted: AtomicU64,
    backend_denied: AtomicU64,
    /// Decisions that a fallback made, by its way.
    alone: LocalDecisions,
    store: Arc<StoreWatch>,
    global_remaining: AtomicU64,
    route_remaining: AtomicU64,
    reloads: AtomicU64,
    failed_reloads: AtomicU64,
    failed_saves: AtomicU64,
    rules: Rules,
    nodes_up: AtomicU64,
    nodes_down: AtomicU64,
    connections: Arc<AtomicU64>,
}

/// What others know, and is told beside what is counted here.
#[derive(Debug)]
pub(crate) struct ScrapeContext<'a> {
    /// The memory's, if that is the store.
    pub(crate) occupancy: Option<Occupancy>,
    /// The breaker's, if it is another.
    pub(crate) breaker: Option<BreakerState>,
    pub(crate) guard: &'a Guard,
    pub(crate) overrides: usize,
    pub(crate) policy: &'a str,
    pub(crate) readiness: Readiness,
    /// How many look at the dashboard.
    pub(crate) watchers: usize,
    pub(crate) started: Timestamp,
}

/// Whether requests should be sent here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    NotReady,
}

/// One that is open, counted as long as it is.
#[derive(Debug)]
pub(crate) struct CountGuard(Arc<AtomicU64>);

impl CountGuard {
    pub(crate) fn new(all: &Arc<AtomicU64>) -> Self {
        add_one(all);
        Self(Arc::clone(all))
    }

    /// None if there are that many already.
    pub(crate) fn try_new(all: &Arc<AtomicU64>, most: u64) -> Option<Self> {
        let more = |open: u64| (open < most).then(|| open + 1);
        all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self(Arc::clone(all)))
    }
}

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Decisions without the store.
#[derive(Debug, Default)]
struct LocalDecisions {
    local: AtomicU64,
    allow: AtomicU64,
    deny: AtomicU64,
}

impl LocalDecisions {
    fn by(&self, loss: OnStoreLoss) -> &AtomicU64 {
        match loss {
            OnStoreLoss::Allow => &self.allow,
            OnStoreLoss::Deny => &self.deny,
            _ => &self.local,
        }
    }
}

/// What has run out when the store itself refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// A limit that this process counts alone.
    Local,
    /// A limit that nodes share.
    Distributed,
}

impl Observer for Metrics {
    type Handles = Handles;

    fn resolve(&self, policy: &Policy) -> Handles {
        self.rules.resolve(policy)
    }

    fn decided(&self, handles: &Handles, observed: &Observation<'_, '_>) {
        if let Ok(decision) = observed.result {
            self.store.note_decision(decision);
        }
        if observed.verb != Verb::Take {
            return;
        }
        self.duration.record(observed.took);
        let Ok(decision) = observed.result else { return };
        if decision.is_allowed() {
            add_one(&self.allowed);
        } else {
            self.count_refusal(decision);
        }
        self.note_remaining(decision);
        if let Some(loss) = decision.loss() {
            add_one(self.alone.by(loss));
        }
        handles.count(observed, decision);
    }
}

impl Metrics {
    /// Nothing counted yet, of a store that refuses for this reason and fares like this.
    pub(crate) fn new(exhausted: Exhausted, store: Arc<StoreWatch>) -> Self {
        Self {
            exhausted,
            allowed: AtomicU64::default(),
            blocked: AtomicU64::default(),
            duration: Histogram::default(),
            local_exhausted: AtomicU64::default(),
            distributed_exhausted: AtomicU64::default(),
            backend_denied: AtomicU64::default(),
            alone: LocalDecisions::default(),
            store,
            global_remaining: AtomicU64::default(),
            route_remaining: AtomicU64::default(),
            reloads: AtomicU64::default(),
            failed_reloads: AtomicU64::default(),
            failed_saves: AtomicU64::default(),
            rules: Rules::default(),
            nodes_up: AtomicU64::default(),
            nodes_down: AtomicU64::default(),
            connections: Arc::default(),
        }
    }

    fn count_refusal(&self, decision: &Decision<'_>) {
        add_one(&self.blocked);
        let reason = match (decision.source(), self.exhausted) {
            _ if decision.loss() == Some(OnStoreLoss::Deny) => &self.backend_denied,
            (Source::Cache | Source::Lease, _) | (Source::Store, Exhausted::Distributed) => {
                &self.distributed_exhausted
            }
            _ => &self.local_exhausted,
        };
        add_one(reason);
    }

    fn note_remaining(&self, decision: &Decision<'_>) {
        if let Some(status) = decision.deciding() {
            let scope = match status.limit().rule() {
                "default" => &self.global_remaining,
                _ => &self.route_remaining,
            };
            scope.store(status.remaining(), Ordering::Relaxed);
        }
    }

    /// All that was counted up to now, in all and for each rule.
    pub(crate) fn tally(&self) -> (Tally, BTreeMap<String, RuleTally>) {
        let alone = [&self.alone.local, &self.alone.allow, &self.alone.deny];
        let degraded = alone.into_iter().map(read).sum();
        let head = [read(&self.allowed), read(&self.blocked), degraded, self.store.errors()];
        let mut figures = head.into_iter().chain(self.duration.counts());
        let tally = Tally(std::array::from_fn(|_| figures.next().unwrap_or_default()));
        (tally, self.rules.tally())
    }

    /// The nodes that share the store, as this one last saw them: up, and down.
    pub(crate) fn note_nodes(&self, up: usize, down: usize) {
        self.nodes_up.store(up as u64, Ordering::Relaxed);
        self.nodes_down.store(down as u64, Ordering::Relaxed);
    }

    /// Counts a connection until what is returned is dropped.
    pub(crate) fn connection(&self) -> CountGuard {
        CountGuard::new(&self.connections)
    }

    /// How the store fares.
    pub(crate) fn store(&self) -> &StoreWatch {
        &self.store
    }

    /// A policy was put in force, or could not be.
    pub(crate) fn count_reload(&self, succeeded: Reload) {
        add_one(match succeeded {
            Reload::Done => &self.reloads,
            Reload::Failed => &self.failed_reloads,
        });
    }

    /// The state could not be saved.
    pub(crate) fn count_failed_save(&self) {
        add_one(&self.failed_saves);
    }

    /// Everything, in Prometheus's text format.
    pub(crate) fn render(&self, beside: &ScrapeContext<'_>) -> String {
        let mut out = Exposition::default();
        self.render_decisions(&mut out);
        self.render_store(&mut out, beside.breaker);
        self.rules.render(&mut out);
        self.render_node(&mut out, beside);
        render_administration(&mut out, beside);
        if let Some(occupancy) = beside.occupancy {
            render_memory(&mut out, occupancy);
        }
        process::render(&mut out, beside.started);
        out.into_text()
    }

    fn render_decisions(&self, out: &mut Exposition) {
        out.counter("ratelimiter_requests_checked_total", "Checks by their result.")
            .sample(&[("result", "allowed")], read(&self.allowed))
            .sample(&[("result", "blocked")], read(&self.blocked));
        let help = "Time to decide a check, planning and store included.";
        out.histogram("ratelimiter_check_duration_seconds", help, &self.duration);
        out.counter("rate_limit_rejections_total", "Refused checks by reason.")
            .sample(&[("reason", "local_exhausted")], read(&self.local_exhausted))
            .sample(&[("reason", "distributed_exhausted")], read(&self.distributed_exhausted))
            .sample(&[("reason", "backend_error")], read(&self.backend_denied));
        let help = "What remained after the last decision in that scope.";
        out.gauge("rate_limit_tokens_remaining", help)
            .sample(&[("scope", "global")], read(&self.global_remaining))
            .sample(&[("scope", "route")], read(&self.route_remaining));
    }

    fn render_store(&self, out: &mut Exposition, breaker: Option<BreakerState>) {
        out.counter("rate_limit_backend_errors_total", "Questions the store could not answer.")
            .sample(&[], self.store.errors());
        let help = "Checks decided without the store that nodes share, by what their rules say of its loss.";
        let mut metric = out.counter("tollgate_degraded_decisions_total", help);
        for loss in [OnStoreLoss::Local, OnStoreLoss::Allow, OnStoreLoss::Deny] {
            metric.sample(&[("by", loss.as_str())], read(self.alone.by(loss)));
        }
        // Memory needs none: what is always asked is closed.
        let state = match breaker {
            None | Some(BreakerState::Closed) => 0,
            Some(BreakerState::Open) => 1,
            Some(_) => 2,
        };
        let help = "Whether the store is asked: 0 it is (closed), 1 it is not (open), 2 it is tried (half-open).";
        out.gauge("tollgate_breaker_state", help).sample(&[], state);
        out.counter("tollgate_breaker_opened_total", "Times the store was given up as lost.")
            .sample(&[], self.store.losses());
    }

    fn render_node(&self, out: &mut Exposition, beside: &ScrapeContext<'_>) {
        let ready = u64::from(beside.readiness == Readiness::Ready);
        out.gauge("tollgate_ready", "Whether requests should be sent here: 1 or 0.")
            .sample(&[], ready);
        if beside.occupancy.is_none() {
            out.gauge("tollgate_nodes", "Nodes that share the store, as this one sees them.")
                .sample(&[("state", "up")], read(&self.nodes_up))
                .sample(&[("state", "down")], read(&self.nodes_down));
        }
        out.gauge("tollgate_connections", "Open connections.").sample(&[], read(&self.connections));
        out.gauge("tollgate_live_watchers", "Who follows the live view of this node.")
            .sample(&[], beside.watchers as u64);
        out.gauge("tollgate_policy_info", "The policy in force, as a label; always 1.")
            .sample(&[("version", beside.policy)], 1);
        out.counter("tollgate_policy_reloads_total", "Policies read again, by result.")
            .sample(&[("result", "ok")], read(&self.reloads))
            .sample(&[("result", "error")], read(&self.failed_reloads));
        out.counter("tollgate_state_save_errors_total", "Times the state could not be saved.")
            .sample(&[], read(&self.failed_saves));
        out.gauge("tollgate_build_info", "The build, as labels; always 1.")
            .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    }
}

fn render_administration(out: &mut Exposition, beside: &ScrapeContext<'_>) {
    out.gauge("tollgate_overrides", "Clients with limits of their own in force.")
        .sample(&[], beside.overrides as u64);
    let mut metric = out.counter(
        "tollgate_auth_failures_total",
        "Requests whose token was missing or wrong, by the token that was wanted.",
    );
    for role in Role::ALL {
        metric.sample(&[("token", role.as_str())], beside.guard.failed(role));
    }
}

fn render_memory(out: &mut Exposition, occupancy: Occupancy) {
    out.gauge("tollgate_memory_keys", "Keys held in memory.").sample(&[], occupancy.keys as u64);
    out.gauge("tollgate_memory_keys_max", "The most keys that will be held in memory.")
        .sample(&[], occupancy.max_keys as u64);
    out.counter("tollgate_memory_untracked_total", "New keys that found no place in memory.")
        .sample(&[], occupancy.untracked);
}

/// How reading a policy again went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reload {
    /// It is in force.
    Done,
    /// The old one stays.
    Failed,
}

fn add_one(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
