//! Counts of a replay: per rule and limit, per key, and over time.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use tollgate::policy::{MatchedRule, Policy, Rule, RuleMode};
use tollgate::{Decision, DefaultHasher, Mode, Status};

use super::timescale::{Interval, Timeline, Timescale};

/// Maximum number of intervals stored for all keys together; later keys have counts only.
const MAX_KEY_INTERVALS: usize = 2_000_000;

/// Refusals of one limit.
#[derive(Debug, Clone)]
pub(crate) struct LimitCount {
    pub(crate) rule: String,
    pub(crate) limit_name: String,
    pub(crate) mode: RuleMode,
    pub(crate) refused: u64,
}

/// Requests of one rule in one interval.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RuleInterval {
    pub(crate) requests: u64,
    pub(crate) refused: u64,
    /// Requests that the rule would have refused if it were not in shadow mode.
    pub(crate) shadow: u64,
}

/// Requests of one rule over time.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleSeries {
    pub(crate) rule: String,
    pub(crate) requests: u64,
    pub(crate) refused: u64,
    pub(crate) shadow: u64,
    pub(crate) intervals: Vec<RuleInterval>,
}

/// Refusals of one key by one rule.
#[derive(Debug, Clone)]
pub(crate) struct KeyCount {
    pub(crate) subject: Box<str>,
    /// Index of the rule in [`Tally::series`].
    pub(crate) rule: usize,
    pub(crate) is_shadow: bool,
    pub(crate) refused: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) timeline: Timeline,
}

/// All counts of one policy.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    pub(crate) refused: u64,
    pub(crate) limits: Vec<LimitCount>,
    pub(crate) series: Vec<RuleSeries>,
    /// Requests of all rules over time; each counts once, however many rules it matches.
    pub(crate) total: Vec<RuleInterval>,
    pub(crate) keys: HashTable<KeyCount>,
    pub(crate) scale: Timescale,
    pub(crate) last: u64,
    key_intervals: usize,
    hasher: DefaultHasher,
}

impl Tally {
    pub(crate) fn new(policy: &Policy) -> Self {
        let rules = || policy.rules().iter().chain([policy.default_rule()]);
        let series =
            |rule: &Rule| RuleSeries { rule: rule.name().to_owned(), ..RuleSeries::default() };
        Self {
            requests: 0,
            refused: 0,
            limits: rules().flat_map(limit_counts).collect(),
            series: rules().map(series).collect(),
            total: Vec::new(),
            keys: HashTable::new(),
            scale: Timescale::default(),
            last: 0,
            key_intervals: 0,
            hasher: DefaultHasher::default(),
        }
    }

    /// Counts a decision at the time `at`.
    pub(crate) fn add(&mut self, at: u64, matched: &[MatchedRule<'_>], decision: &Decision<'_>) {
        let interval = self.scale.interval(at);
        (0..interval.doublings).for_each(|_| self.halve());
        (self.requests, self.last) = (self.requests + 1, at);
        for rule in matched {
            self.count_rule(rule.rule().index(), interval, |counts| counts.requests += 1);
        }
        let is_refused = !decision.is_allowed();
        let is_shadow_refused = decision.statuses().iter().any(is_shadow_refusal);
        if let Some(total) = interval_mut(&mut self.total, interval) {
            total.requests += 1;
            total.refused += u64::from(is_refused);
            total.shadow += u64::from(is_shadow_refused);
        }
        if is_refused {
            self.refused += 1;
            if let Some(status) = decision.deciding() {
                self.refuse(at, interval, matched, status);
            }
        }
        if is_shadow_refused {
            self.add_shadow(at, interval, matched, decision);
        }
    }

    /// Counts each shadow group that would have refused once, for the limit with the longest wait.
    fn add_shadow(
        &mut self,
        at: u64,
        interval: Interval,
        matched: &[MatchedRule<'_>],
        decision: &Decision<'_>,
    ) {
        let statuses = || decision.statuses().iter().filter(|status| is_shadow_refusal(status));
        for status in statuses() {
            let group = statuses().filter(|other| other.mode() == status.mode());
            let wait = |status: &Status<'_>| {
                status.verdict().retry_after().map_or(u128::MAX, |wait| wait.as_nanos())
            };
            let longest = group.max_by_key(|status| wait(status));
            if longest.is_some_and(|longest| std::ptr::eq(longest, status)) {
                self.refuse(at, interval, matched, status);
            }
        }
    }

    fn refuse(
        &mut self,
        at: u64,
        interval: Interval,
        matched: &[MatchedRule<'_>],
        status: &Status<'_>,
    ) {
        let is_shadow = status.mode() != Mode::Enforce;
        let limit = status.limit();
        let mode = if is_shadow { RuleMode::Shadow } else { RuleMode::Enforce };
        let is_row = |row: &&mut LimitCount| {
            row.rule == limit.rule() && row.limit_name == limit.name() && row.mode == mode
        };
        if let Some(row) = self.limits.iter_mut().find(is_row) {
            row.refused += 1;
        }
        let Some(rule) = matched.iter().find(|matched| matched.rule().name() == limit.rule())
        else {
            return;
        };
        let index = rule.rule().index();
        self.count_rule(index, interval, |counts| {
            *if is_shadow { &mut counts.shadow } else { &mut counts.refused } += 1;
        });
        self.refuse_key(at, interval, index, is_shadow, rule.subject().as_str());
    }

    fn count_rule(&mut self, rule: usize, interval: Interval, count: impl Fn(&mut RuleInterval)) {
        let Some(series) = self.series.get_mut(rule) else { return };
        if let Some(counts) = interval_mut(&mut series.intervals, interval) {
            count(counts);
        }
    }

    fn refuse_key(
        &mut self,
        at: u64,
        interval: Interval,
        rule: usize,
        is_shadow: bool,
        subject: &str,
    ) {
        let hasher = &self.hasher;
        let key = self
            .keys
            .entry(
                hasher.hash_one(subject),
                |key| *key.subject == *subject && (key.rule, key.is_shadow) == (rule, is_shadow),
                |key| hasher.hash_one(&*key.subject),
            )
            .or_insert_with(|| KeyCount {
                subject: subject.into(),
                rule,
                is_shadow,
                refused: 0,
                first: at,
                last: at,
                timeline: Timeline::default(),
            })
            .into_mut();
        key.refused += 1;
        key.last = at;
        if key.timeline.len() > 0 || self.key_intervals < MAX_KEY_INTERVALS {
            let before = key.timeline.len();
            key.timeline.add(interval.index);
            self.key_intervals += key.timeline.len() - before;
        }
    }

    /// Joins pairs of intervals, because the scale has doubled.
    fn halve(&mut self) {
        let rules = self.series.iter_mut().map(|series| &mut series.intervals);
        for intervals in rules.chain([&mut self.total]) {
            let pairs = intervals.chunks(2);
            *intervals =
                pairs.map(|pair| pair.iter().copied().fold(RuleInterval::default(), sum)).collect();
        }
        self.key_intervals = 0;
        for key in &mut self.keys {
            key.timeline.halve();
            self.key_intervals += key.timeline.len();
        }
    }

    /// Computes the totals of each rule.
    pub(crate) fn finish(&mut self) {
        for series in &mut self.series {
            let total = series.intervals.iter().copied().fold(RuleInterval::default(), sum);
            (series.requests, series.refused, series.shadow) =
                (total.requests, total.refused, total.shadow);
        }
    }
}

/// Returns the counts of an interval, which is added if it is new.
fn interval_mut(
    intervals: &mut Vec<RuleInterval>,
    interval: Interval,
) -> Option<&mut RuleInterval> {
    let index = usize::try_from(interval.index).unwrap_or(usize::MAX);
    if intervals.len() <= index {
        intervals.resize(index + 1, RuleInterval::default());
    }
    intervals.get_mut(index)
}

/// Returns whether a limit that does not refuse would have refused.
fn is_shadow_refusal(status: &Status<'_>) -> bool {
    status.mode() != Mode::Enforce && !status.verdict().is_allowed()
}

fn sum(one: RuleInterval, other: RuleInterval) -> RuleInterval {
    RuleInterval {
        requests: one.requests + other.requests,
        refused: one.refused + other.refused,
        shadow: one.shadow + other.shadow,
    }
}

/// Returns a row for each limit of a rule, with trial limits, and for the block of requests without a `per` fact.
fn limit_counts(rule: &Rule) -> Vec<LimitCount> {
    let row = |limit_name: &str, mode| LimitCount {
        rule: rule.name().to_owned(),
        limit_name: limit_name.to_owned(),
        mode,
        refused: 0,
    };
    let live = rule.limits().iter().map(|limit| row(limit.name(), rule.mode()));
    let trial = rule.next().iter().map(|limit| row(limit.name(), RuleMode::Shadow));
    let denies = rule.missing() == tollgate::policy::OnMissingFact::Deny;
    live.chain(trial).chain(denies.then(|| row("missing", rule.mode()))).collect()
}
