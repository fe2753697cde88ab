//! The observer that records decisions.

use std::sync::OnceLock;

use ::metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_histogram, gauge,
};
use ::metrics::{describe_gauge, histogram};
use tollgate::policy::Policy;
use tollgate::{
    Decision, Observation, Observer, OnStoreLoss, Source, Status, StoreError, StoreErrorKind, Verb,
};

use super::rules::RuleCounters;
use super::store::BACKEND_ERRORS;

const CHECKED: &str = "ratelimiter_requests_checked_total";
const DURATION: &str = "ratelimiter_check_duration_seconds";
const REJECTIONS: &str = "rate_limit_rejections_total";
const REMAINING: &str = "rate_limit_tokens_remaining";
const SHED: &str = "tollgate_shed_total";
const DEGRADED: &str = "tollgate_degraded_decisions_total";

/// An [`Observer`] that records every decision with the `metrics` facade.
///
/// Checks are takes, and admissions of a layer that charges by the response. Peeks, refunds and debits are not counted.
///
/// ```
/// use metrics_exporter_prometheus::PrometheusBuilder;
/// use tollgate::{Facts, Limiter, MemoryStore, Policy, Query, Request, Verb};
/// use tollgate_tower::metrics::MetricsObserver;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let recorder = PrometheusBuilder::new().install_recorder()?;
/// let observer = MetricsObserver::for_memory();
/// let limiter = Limiter::with_observer(MemoryStore::new(), Policy::builtin(), observer);
/// let query = Query::ByPolicy(Request::new(Facts::of([("client", "c1")])?));
/// limiter.decide(Verb::Take, &query, |_| ()).await?;
/// let line = r#"ratelimiter_requests_checked_total{result="allowed"} 1"#;
/// assert!(recorder.render().contains(line));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MetricsObserver {
    allowed: Counter,
    blocked: Counter,
    duration: Histogram,
    rejections: Rejections,
    backend_errors: Counter,
    shed: Counter,
    degraded: DegradedDecisions,
    remaining: Remaining,
    /// Whether refusals by the store are shared by several processes.
    is_distributed: bool,
}

#[derive(Debug)]
struct Rejections {
    local: Counter,
    distributed: Counter,
    backend_error: Counter,
}

#[derive(Debug)]
struct DegradedDecisions {
    local: Counter,
    allow: Counter,
    deny: Counter,
}

/// Gauges of the remaining quota. Resolved at their first value, so that they are absent before it.
#[derive(Debug, Default)]
struct Remaining {
    global: OnceLock<Gauge>,
    route: OnceLock<Gauge>,
}

/// The metric handles of a policy's rules, in policy order with the default rule last.
#[derive(Debug)]
pub struct RuleMetrics(Vec<RuleCounters>);

impl MetricsObserver {
    /// Creates the observer of a limiter over memory: its refusals have the reason `local_exhausted`.
    #[must_use]
    pub fn for_memory() -> Self {
        Self::new(false)
    }

    /// Creates the observer of a limiter over Redis, with or without a fallback: refusals by Redis have the reason
    /// `distributed_exhausted`.
    #[must_use]
    pub fn for_redis() -> Self {
        Self::new(true)
    }

    fn new(is_distributed: bool) -> Self {
        describe();
        let rejections = |reason| registered(counter!(REJECTIONS, "reason" => reason));
        let degraded = |loss: OnStoreLoss| registered(counter!(DEGRADED, "by" => loss.as_str()));
        Self {
            allowed: registered(counter!(CHECKED, "result" => "allowed")),
            blocked: registered(counter!(CHECKED, "result" => "blocked")),
            duration: histogram!(DURATION),
            rejections: Rejections {
                local: rejections("local_exhausted"),
                distributed: rejections("distributed_exhausted"),
                backend_error: rejections("backend_error"),
            },
            backend_errors: registered(counter!(BACKEND_ERRORS)),
            shed: registered(counter!(SHED)),
            degraded: DegradedDecisions {
                local: degraded(OnStoreLoss::Local),
                allow: degraded(OnStoreLoss::Allow),
                deny: degraded(OnStoreLoss::Deny),
            },
            remaining: Remaining::default(),
            is_distributed,
        }
    }

    fn count_refusal(&self, decision: &Decision<'_>) {
        self.blocked.increment(1);
        let reason = match decision.source() {
            _ if decision.loss() == Some(OnStoreLoss::Deny) => &self.rejections.backend_error,
            Source::Cache | Source::Lease => &self.rejections.distributed,
            Source::Store if self.is_distributed => &self.rejections.distributed,
            _ => &self.rejections.local,
        };
        reason.increment(1);
    }
}

impl Observer for MetricsObserver {
    type Handles = RuleMetrics;

    fn resolve(&self, policy: &Policy) -> RuleMetrics {
        let rules = policy.rules().iter().chain([policy.default_rule()]);
        RuleMetrics(rules.map(|rule| RuleCounters::new(rule.name())).collect())
    }

    fn decided(&self, handles: &RuleMetrics, observation: &Observation<'_, '_>) {
        match observation.result.map_err(StoreError::kind) {
            Ok(_) => {}
            Err(StoreErrorKind::Overloaded) => self.shed.increment(1),
            Err(_) => self.backend_errors.increment(1),
        }
        if !matches!(observation.verb, Verb::Take | Verb::Admit) {
            return;
        }
        self.duration.record(observation.took);
        let Ok(decision) = observation.result else { return };
        if decision.is_allowed() {
            self.allowed.increment(1);
        } else {
            self.count_refusal(decision);
        }
        self.remaining.record(decision);
        match decision.loss() {
            None => {}
            Some(OnStoreLoss::Allow) => self.degraded.allow.increment(1),
            Some(OnStoreLoss::Deny) => self.degraded.deny.increment(1),
            Some(_) => self.degraded.local.increment(1),
        }
        for matched in observation.query.matched() {
            if let Some(counters) = handles.0.get(matched.rule().index()) {
                counters.record(matched.rule(), decision);
            }
        }
    }
}

impl Remaining {
    fn record(&self, decision: &Decision<'_>) {
        // Amounts of other units would make the gauge jump.
        let deciding = decision.deciding();
        let in_requests = |status: &&Status<'_>| status.limit().unit().is_requests();
        let Some(status) = deciding.filter(in_requests) else { return };
        let (gauge, scope) = match status.limit().rule() {
            "default" => (&self.global, "global"),
            _ => (&self.route, "route"),
        };
        #[expect(clippy::cast_precision_loss, reason = "amounts are below 2^53")]
        let remaining = status.remaining() as f64;
        gauge.get_or_init(|| gauge!(REMAINING, "scope" => scope)).set(remaining);
    }
}

/// Registers a counter, so that it is exported with 0 before its first event.
pub(super) fn registered(counter: Counter) -> Counter {
    counter.increment(0);
    counter
}

fn describe() {
    describe_counter!(CHECKED, "Checks by result.");
    let help = "Time to decide a check in seconds, including planning and the store call.";
    describe_histogram!(DURATION, Unit::Seconds, help);
    describe_counter!(REJECTIONS, "Refused checks by reason.");
    let help = "Remaining quota after the last decision (global: default limit, route: any rule).";
    describe_gauge!(REMAINING, help);
    let help =
        "Checks decided without the shared store, by the on_store_loss setting that applied.";
    describe_counter!(DEGRADED, help);
    describe_counter!(BACKEND_ERRORS, "Failed store calls.");
    describe_counter!(SHED, "Requests shed because too many wait for the store.");
    super::rules::describe();
}
