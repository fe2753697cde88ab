//! What is counted. Decisions are counted here only, through handles resolved when a policy is set.

mod histogram;
mod outage;
mod store_errors;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tollgate::policy::Policy;
use tollgate::{Decision, Mode, Observed, Observer, Occupancy, Source, StoreError, Verb};

use histogram::Histogram;
use store_errors::StoreErrors;
use text::Exposition;

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
    store_errors: StoreErrors,
    global_remaining: AtomicU64,
    route_remaining: AtomicU64,
    reloads: AtomicU64,
    failed_reloads: AtomicU64,
    failed_saves: AtomicU64,
    rules: Mutex<BTreeMap<String, Arc<RuleCounters>>>,
}

/// What has run out when the store itself refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// A limit that this process counts alone.
    Local,
    /// A limit that nodes share.
    Distributed,
}

/// What is counted for one rule.
#[derive(Debug, Default)]
pub(crate) struct RuleCounters {
    shadow: AtomicU64,
    next: AtomicU64,
}

/// A policy's rules in their order, the default last.
#[derive(Debug)]
pub(crate) struct Handles(Vec<Arc<RuleCounters>>);

impl Observer for Metrics {
    type Handles = Handles;

    /// Rules keep their counts across policies by name; those of rules that are gone are dropped, so
    /// that the number of series stays that of the rules.
    fn resolve(&self, policy: &Policy) -> Handles {
        let mut known = self.rules.lock();
        let rules = policy.rules().iter().chain([policy.default_rule()]);
        let named: Vec<(String, Arc<RuleCounters>)> = rules
            .map(|rule| (rule.name().to_owned(), known.remove(rule.name()).unwrap_or_default()))
            .collect();
        let handles = named.iter().map(|(_, counters)| Arc::clone(counters)).collect();
        *known = named.into_iter().collect();
        Handles(handles)
    }

    fn decided(&self, handles: &Handles, observed: &Observed<'_, '_>) {
        match observed.result {
            Ok(decision) => self.store_errors.note_decision(decision),
            Err(error) => self.store_errors.note(error),
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
        if decision.statuses().iter().any(|status| status.mode() != Mode::Enforce) {
            handles.count_shadows(observed, decision);
        }
    }
}

impl Handles {
    /// Once per rule that would have refused, however many of its limits would.
    fn count_shadows(&self, observed: &Observed<'_, '_>, decision: &Decision<'_>) {
        for matched in observed.applied.matched() {
            let rule = matched.rule();
            let Some(counters) = self.0.get(rule.index()) else { continue };
            let refused = |is_next: bool| {
                decision.statuses().iter().any(|status| {
                    let limit = status.limit();
                    status.mode() != Mode::Enforce
                        && limit.rule() == rule.name()
                        && rule.is_on_trial(limit.name()) == is_next
                        && !status.verdict().is_allowed()
                })
            };
            if refused(false) {
                add_one(&counters.shadow);
            }
            if refused(true) {
                add_one(&counters.next);
            }
        }
    }
}

impl Metrics {
    /// Nothing counted yet, of a store that refuses for this reason.
    pub(crate) fn new(exhausted: Exhausted) -> Self {
        Self {
            exhausted,
            allowed: AtomicU64::default(),
            blocked: AtomicU64::default(),
            duration: Histogram::default(),
            local_exhausted: AtomicU64::default(),
            distributed_exhausted: AtomicU64::default(),
            backend_denied: AtomicU64::default(),
            store_errors: StoreErrors::default(),
            global_remaining: AtomicU64::default(),
            route_remaining: AtomicU64::default(),
            reloads: AtomicU64::default(),
            failed_reloads: AtomicU64::default(),
            failed_saves: AtomicU64::default(),
            rules: Mutex::default(),
        }
    }

    fn count_refusal(&self, decision: &Decision<'_>) {
        add_one(&self.blocked);
        let reason = match (decision.source(), self.exhausted) {
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

    /// A question other than for a decision could not be answered.
    pub(crate) fn count_store_error(&self, error: &StoreError) {
        self.store_errors.note(error);
    }

    /// A question other than for a decision was answered.
    pub(crate) fn note_store_answer(&self) {
        self.store_errors.note_answer();
    }

    /// Why the store could not answer what it was last asked, unless it has answered since.
    pub(crate) fn store_failure(&self) -> Option<String> {
        self.store_errors.last()
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

    /// Everything, in Prometheus's text format, with the memory's figures if that is the store.
    pub(crate) fn render(&self, occupancy: Option<Occupancy>) -> String {
        let mut out = Exposition::default();
        self.render_decisions(&mut out);
        self.render_rules(&mut out);
        self.render_node(&mut out);
        if let Some(occupancy) = occupancy {
            render_memory(&mut out, occupancy);
        }
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
        out.counter("rate_limit_backend_errors_total", "Questions the store could not answer.")
            .sample(&[], self.store_errors.count());
    }

    fn render_rules(&self, out: &mut Exposition) {
        let rules = self.rules.lock();
        let help = "Checks that a shadow rule or a trial limit would have refused.";
        let mut metric = out.counter("tollgate_would_refuse_total", help);
        for (rule, counters) in rules.iter() {
            metric
                .sample(&[("rule", rule), ("trial", "shadow")], read(&counters.shadow))
                .sample(&[("rule", rule), ("trial", "next")], read(&counters.next));
        }
    }

    fn render_node(&self, out: &mut Exposition) {
        out.counter("tollgate_policy_reloads_total", "Policies read again, by result.")
            .sample(&[("result", "ok")], read(&self.reloads))
            .sample(&[("result", "error")], read(&self.failed_reloads));
        out.counter("tollgate_state_save_errors_total", "Times the state could not be saved.")
            .sample(&[], read(&self.failed_saves));
        out.gauge("tollgate_build_info", "The build, as labels; always 1.")
            .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
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
