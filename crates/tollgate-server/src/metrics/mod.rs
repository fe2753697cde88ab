//! Prometheus metrics of a node. Decisions are counted only here, through handles that are resolved when a policy
//! is set.

mod front_ends;
mod histogram;
mod http_requests;
mod process;
mod rules;
mod settlements;
mod tally;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::lease::LeaseStats;
use tollgate::policy::Policy;
use tollgate::{
    BreakerState, Decision, Observation, Observer, Occupancy, OnStoreLoss, Source, Status,
    Timestamp, Verb,
};

pub(crate) use front_ends::{FrontEndCounters, FrontEnds};
use histogram::{BOUNDS, Histogram};
pub(crate) use http_requests::HttpRequests;
pub(crate) use rules::Handles;
use rules::Rules;
use settlements::Settlements;
#[cfg(test)]
pub(crate) use tally::SCALE;
pub(crate) use tally::{RuleTally, Slice, Tally};
use text::{Exposition, UNKNOWN};

use crate::access::{Guard, Role};
use crate::shutdown::Readiness;
use crate::store::StoreWatch;

/// Counters of one node.
#[derive(Debug)]
pub(crate) struct Metrics {
    exhausted: Exhausted,
    allowed: AtomicU64,
    blocked: AtomicU64,
    duration: Histogram<{ BOUNDS.len() }>,
    local_exhausted: AtomicU64,
    distributed_exhausted: AtomicU64,
    backend_denied: AtomicU64,
    /// Checks decided in degraded mode, by `on_store_loss`.
    degraded: DegradedDecisions,
    store: Arc<StoreWatch>,
    global_remaining: AtomicU64,
    route_remaining: AtomicU64,
    reloads: AtomicU64,
    failed_reloads: AtomicU64,
    failed_saves: AtomicU64,
    rules: Rules,
    nodes_up: AtomicU64,
    nodes_down: AtomicU64,
    front_ends: FrontEnds,
    http_requests: HttpRequests,
    settlements: Settlements,
}

/// Values from other parts of the node that are read for each scrape.
#[derive(Debug)]
pub(crate) struct ScrapeContext<'a> {
    /// Occupancy of the memory store; `None` with Redis.
    pub(crate) occupancy: Option<Occupancy>,
    /// Figures of the leases; `None` with the memory store.
    pub(crate) leases: Option<LeaseStats>,
    /// State of the Redis circuit breaker; `None` with the memory store.
    pub(crate) breaker: Option<BreakerState>,
    pub(crate) guard: &'a Guard,
    pub(crate) overrides: usize,
    /// Version of the active policy.
    pub(crate) policy: &'a str,
    pub(crate) readiness: &'a Readiness,
    /// Number of open live streams.
    pub(crate) watchers: usize,
    pub(crate) started: Timestamp,
}

/// Increments a gauge until it is dropped.
#[derive(Debug)]
pub(crate) struct CountGuard(Arc<AtomicU64>);

impl CountGuard {
    fn new(gauge: &Arc<AtomicU64>) -> Self {
        add_one(gauge);
        Self(Arc::clone(gauge))
    }

    /// Returns `None` if the gauge has reached `max`.
    pub(crate) fn try_new(gauge: &Arc<AtomicU64>, max: u64) -> Option<Self> {
        let increment = |open: u64| (open < max).then(|| open + 1);
        gauge.fetch_update(Ordering::Relaxed, Ordering::Relaxed, increment).ok()?;
        Some(Self(Arc::clone(gauge)))
    }
}

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Checks decided without the shared store, by the `on_store_loss` that applied.
#[derive(Debug, Default)]
struct DegradedDecisions {
    local: AtomicU64,
    allow: AtomicU64,
    deny: AtomicU64,
}

impl DegradedDecisions {
    fn counter(&self, loss: OnStoreLoss) -> &AtomicU64 {
        match loss {
            OnStoreLoss::Allow => &self.allow,
            OnStoreLoss::Deny => &self.deny,
            _ => &self.local,
        }
    }
}

/// The kind of limit that a refusal by the store has exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// A limit counted in this process only (memory store).
    Local,
    /// A limit shared by all nodes (Redis store).
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
            add_one(self.degraded.counter(loss));
        }
        handles.count(observed, decision);
    }
}

impl Metrics {
    pub(crate) fn new(exhausted: Exhausted, store: Arc<StoreWatch>) -> Self {
        Self {
            exhausted,
            allowed: AtomicU64::default(),
            blocked: AtomicU64::default(),
            duration: Histogram::new(&BOUNDS),
            local_exhausted: AtomicU64::default(),
            distributed_exhausted: AtomicU64::default(),
            backend_denied: AtomicU64::default(),
            degraded: DegradedDecisions::default(),
            store,
            global_remaining: AtomicU64::new(UNKNOWN),
            route_remaining: AtomicU64::new(UNKNOWN),
            reloads: AtomicU64::default(),
            failed_reloads: AtomicU64::default(),
            failed_saves: AtomicU64::default(),
            rules: Rules::default(),
            nodes_up: AtomicU64::new(UNKNOWN),
            nodes_down: AtomicU64::new(UNKNOWN),
            front_ends: FrontEnds::default(),
            http_requests: HttpRequests::default(),
            settlements: Settlements::default(),
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
        // Amounts of other units would make the gauge jump.
        let in_requests = |status: &&Status<'_>| status.limit().unit().is_requests();
        if let Some(status) = decision.deciding().filter(in_requests) {
            let scope = match status.limit().rule() {
                "default" => &self.global_remaining,
                _ => &self.route_remaining,
            };
            scope.store(status.remaining(), Ordering::Relaxed);
        }
    }

    /// Returns all counts since the start: in total, and per rule.
    pub(crate) fn tally(&self) -> (Tally, BTreeMap<String, RuleTally>) {
        let degraded = [&self.degraded.local, &self.degraded.allow, &self.degraded.deny];
        let degraded = degraded.into_iter().map(read).sum();
        let head = [read(&self.allowed), read(&self.blocked), degraded, self.store.errors()];
        let mut figures = head.into_iter().chain(self.duration.counts());
        let tally = Tally(std::array::from_fn(|_| figures.next().unwrap_or_default()));
        (tally, self.rules.tally())
    }

    /// Records how many nodes share the store, as last seen by this node.
    pub(crate) fn note_nodes(&self, up: u32, down: u32) {
        self.nodes_up.store(up.into(), Ordering::Relaxed);
        self.nodes_down.store(down.into(), Ordering::Relaxed);
    }

    /// Returns the counters of the front ends.
    pub(crate) const fn front_ends(&self) -> &FrontEnds {
        &self.front_ends
    }

    /// Returns the counters of HTTP requests by route.
    pub(crate) const fn http_requests(&self) -> &HttpRequests {
        &self.http_requests
    }

    /// Returns the settled amounts.
    pub(crate) const fn settlements(&self) -> &Settlements {
        &self.settlements
    }

    /// Returns the failure state of the store.
    pub(crate) fn store(&self) -> &StoreWatch {
        &self.store
    }

    /// Counts an attempt to reload the policy.
    pub(crate) fn count_reload(&self, result: ReloadResult) {
        add_one(match result {
            ReloadResult::Activated => &self.reloads,
            ReloadResult::Failed => &self.failed_reloads,
        });
    }

    /// Counts a failed attempt to save the snapshot.
    pub(crate) fn count_failed_save(&self) {
        add_one(&self.failed_saves);
    }

    /// Returns all metrics in the Prometheus text format.
    pub(crate) fn render(&self, context: &ScrapeContext<'_>) -> String {
        let mut out = Exposition::default();
        self.front_ends.render_requests(&mut out);
        self.http_requests.render(&mut out);
        self.render_decisions(&mut out);
        self.render_store(&mut out, context.breaker);
        self.rules.render(&mut out);
        self.settlements.render(&mut out);
        self.render_node(&mut out, context);
        render_administration(&mut out, context);
        if let Some(occupancy) = context.occupancy {
            render_memory(&mut out, occupancy);
        }
        if let Some(leases) = context.leases {
            render_leases(&mut out, leases);
        }
        process::render(&mut out, context.started);
        out.into_text()
    }

    fn render_decisions(&self, out: &mut Exposition) {
        out.counter("ratelimiter_requests_checked_total", "Checks by result.")
            .sample(&[("result", "allowed")], read(&self.allowed))
            .sample(&[("result", "blocked")], read(&self.blocked));
        let help = "Time to decide a check in seconds, including planning and the store call.";
        let name = "ratelimiter_check_duration_seconds";
        out.histogram(name, help);
        out.series(name, None, &self.duration);
        out.counter("rate_limit_rejections_total", "Refused checks by reason.")
            .sample(&[("reason", "local_exhausted")], read(&self.local_exhausted))
            .sample(&[("reason", "distributed_exhausted")], read(&self.distributed_exhausted))
            .sample(&[("reason", "backend_error")], read(&self.backend_denied));
        let help =
            "Remaining quota after the last decision (global: default limit, route: any rule).";
        let mut metric = out.gauge("rate_limit_tokens_remaining", help);
        metric.sample_known(&[("scope", "global")], read(&self.global_remaining));
        metric.sample_known(&[("scope", "route")], read(&self.route_remaining));
    }

    fn render_store(&self, out: &mut Exposition, breaker: Option<BreakerState>) {
        out.counter("rate_limit_backend_errors_total", "Failed store calls.")
            .sample(&[], self.store.errors());
        let help = "Requests shed because too many wait for Redis, which replies.";
        out.counter("tollgate_shed_total", help).sample(&[], self.store.shed());
        let help =
            "Checks decided without the shared store, by the on_store_loss setting that applied.";
        let mut metric = out.counter("tollgate_degraded_decisions_total", help);
        for loss in [OnStoreLoss::Local, OnStoreLoss::Allow, OnStoreLoss::Deny] {
            metric.sample(&[("by", loss.as_str())], read(self.degraded.counter(loss)));
        }
        // The memory store has no breaker and counts as closed.
        let state = match breaker {
            None | Some(BreakerState::Closed) => 0,
            Some(BreakerState::Open) => 1,
            Some(_) => 2,
        };
        let help = "State of the store's circuit breaker: 0 closed, 1 open, 2 half-open.";
        out.gauge("tollgate_breaker_state", help).sample(&[], state);
        let help = "Times the store's circuit breaker opened.";
        out.counter("tollgate_breaker_opened_total", help).sample(&[], self.store.losses());
    }

    fn render_node(&self, out: &mut Exposition, context: &ScrapeContext<'_>) {
        let ready = u64::from(context.readiness.is_ready());
        out.gauge("tollgate_ready", "1 if this node accepts requests, 0 while it drains.")
            .sample(&[], ready);
        if context.occupancy.is_none() {
            out.gauge("tollgate_nodes", "Nodes that share the store, as seen by this node.")
                .sample_known(&[("state", "up")], read(&self.nodes_up))
                .sample_known(&[("state", "down")], read(&self.nodes_down));
        }
        self.front_ends.render_connections(out);
        out.gauge("tollgate_live_watchers", "Open live streams (dashboards and tollgate top).")
            .sample(&[], context.watchers as u64);
        out.gauge("tollgate_policy_info", "Version of the active policy as a label; always 1.")
            .sample(&[("version", context.policy)], 1);
        out.counter("tollgate_policy_reloads_total", "Policy reloads by result.")
            .sample(&[("result", "ok")], read(&self.reloads))
            .sample(&[("result", "error")], read(&self.failed_reloads));
        let help = "Failed attempts to save data to --data-dir.";
        out.counter("tollgate_state_save_errors_total", help).sample(&[], read(&self.failed_saves));
        out.gauge("tollgate_build_info", "Program version as a label; always 1.")
            .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    }
}

fn render_administration(out: &mut Exposition, context: &ScrapeContext<'_>) {
    out.gauge("tollgate_overrides", "Active client overrides.")
        .sample(&[], context.overrides as u64);
    let help = "Requests with a missing or invalid token, by required token.";
    let mut metric = out.counter("tollgate_auth_failures_total", help);
    for role in Role::ALL {
        metric.sample(&[("token", role.as_str())], context.guard.failed(role));
    }
}

fn render_memory(out: &mut Exposition, occupancy: Occupancy) {
    out.gauge("tollgate_memory_keys", "Keys in the memory store.")
        .sample(&[], occupancy.keys as u64);
    out.gauge("tollgate_memory_keys_max", "Maximum keys in the memory store (--max-keys).")
        .sample(&[], occupancy.max_keys as u64);
    let help = "New keys that were not tracked because the memory store was full.";
    out.counter("tollgate_memory_untracked_total", help).sample(&[], occupancy.untracked);
}

fn render_leases(out: &mut Exposition, leases: LeaseStats) {
    let help = "Quota that this node debited from Redis in advance.";
    out.counter("tollgate_lease_granted_total", help).sample(&[], leases.granted);
    let help = "Leased quota that requests have used.";
    out.counter("tollgate_lease_spent_total", help).sample(&[], leases.spent);
    let help = "Leased quota that refunds returned to a lease.";
    out.counter("tollgate_lease_refunded_total", help).sample(&[], leases.refunded);
    let help = "Leased quota that was not used before its lease ended.";
    out.counter("tollgate_lease_dropped_total", help).sample(&[], leases.dropped);
    out.counter("tollgate_lease_requests_total", "Requests to Redis for a lease by result.")
        .sample(&[("result", "granted")], leases.grants)
        .sample(&[("result", "not_granted")], leases.not_granted);
    let help = "Checks decided from a lease, each without a call to Redis.";
    out.counter("tollgate_lease_decisions_total", help).sample(&[], leases.decisions);
    let help = "Keys, or combinations of keys, of which this node holds a lease.";
    out.gauge("tollgate_lease_held", help).sample(&[], leases.held);
}

/// The result of a policy reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReloadResult {
    /// The new policy is active.
    Activated,
    /// The previous policy stays active.
    Failed,
}

fn add_one(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
