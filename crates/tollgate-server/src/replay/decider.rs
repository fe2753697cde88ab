//! Decides requests on the log's clock, with the plan and step code of the server.

use tollgate::policy::{Policy, Rule};
use tollgate::{Costs, Facts, Limit, ManualClock, MemoryStore, Request, Timestamp};

use super::curve::LimitCurve;
use super::request_facts::defined_facts;
use super::tally::Tally;

/// Maximum number of keys, far above what fits into memory: a replay must not forget any.
const MAX_KEYS: usize = 1 << 30;

/// A policy with the counters of a replay.
#[derive(Debug)]
pub(crate) struct Decider<'p> {
    policy: &'p Policy,
    clock: ManualClock,
    store: MemoryStore<ManualClock>,
    pub(crate) tally: Tally,
    pub(crate) curves: Curves,
    /// Requests whose rules have too many limits for one plan; the server returns an error for them.
    pub(crate) failed: u64,
}

impl<'p> Decider<'p> {
    /// Creates a decider that also counts for these curves.
    pub(crate) fn new(policy: &'p Policy, curves: Curves) -> Self {
        let clock = ManualClock::new();
        let store = MemoryStore::builder().clock(clock.clone()).max_keys(MAX_KEYS).build();
        Self { policy, clock, store, tally: Tally::new(policy), curves, failed: 0 }
    }

    /// Decides a request at the time `at`, in microseconds since the Unix epoch.
    pub(crate) fn decide(&mut self, at: u64, facts: Facts<'_>, costs: Costs) {
        self.clock.set(Timestamp::from_micros(at));
        let request = Request::new(defined_facts(self.policy, facts)).with_costs(costs);
        let planned = self.policy.plan(&request);
        let Ok(plan) = planned.plan() else {
            self.failed += 1;
            return;
        };
        let decision = self.store.take(&plan);
        self.tally.add(at, planned.matched(), &decision);
        self.curves.take(at, &planned);
    }
}

/// Curves of all limits of a policy.
#[derive(Debug, Default)]
pub(crate) struct Curves {
    /// By index of the rule, then of the limit in the rule.
    rules: Vec<Vec<Option<LimitCurve>>>,
}

impl Curves {
    /// Creates the curve of each limit at the counts that `values` returns for it. Without counts it has no curve.
    pub(crate) fn new(policy: &Policy, mut values: impl FnMut(&Limit) -> Vec<u64>) -> Self {
        let mut curve = |limit: &Limit| {
            let values = values(limit);
            if values.is_empty() { None } else { LimitCurve::new(limit, &values) }
        };
        let rules = rules(policy).map(|rule| rule.limits().iter().map(&mut curve).collect());
        Self { rules: rules.collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rules.iter().flatten().all(Option::is_none)
    }

    /// Counts a request for the curves of all rules that it matches.
    pub(crate) fn take(&mut self, at: u64, planned: &tollgate::policy::PolicyPlan<'_>) {
        for matched in planned.matched() {
            let curves = self.rules.get_mut(matched.rule().index()).into_iter().flatten();
            for (curve, limit) in curves.zip(matched.rule().limits()) {
                if let Some(curve) = curve {
                    curve.take(matched.subject().as_str(), at, matched.cost_of(limit));
                }
            }
        }
    }

    /// Returns the curve of each limit, with its rule.
    pub(crate) fn iter<'c>(
        &'c self,
        policy: &'c Policy,
    ) -> impl Iterator<Item = (&'c Rule, &'c Limit, &'c LimitCurve)> {
        rules(policy).zip(&self.rules).flat_map(|(rule, curves)| {
            let pairs = rule.limits().iter().zip(curves);
            pairs.filter_map(move |(limit, curve)| Some((rule, limit, curve.as_ref()?)))
        })
    }
}

/// Returns all rules, the default rule last, in the order of their indexes.
fn rules(policy: &Policy) -> impl Iterator<Item = &Rule> {
    policy.rules().iter().chain([policy.default_rule()])
}
