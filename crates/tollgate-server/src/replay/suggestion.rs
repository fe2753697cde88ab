//! The smallest limit that would have refused few requests, from a curve.

use tollgate::Limit;
use tollgate::policy::{Policy, Rule};

use super::curve::{CurvePoint, refined_values};
use super::decider::Curves;

/// Refused requests in a thousand that the two suggestions allow.
pub(crate) const ONE_PER_MILLE: u64 = 1;
pub(crate) const ONE_PERCENT: u64 = 10;

/// The curve of one limit, and what follows from it.
#[derive(Debug, Clone)]
pub(crate) struct Suggestion {
    pub(crate) rule: String,
    pub(crate) limit_name: String,
    pub(crate) rate: Rate,
    /// Requests of the rule.
    pub(crate) requests: u64,
    /// Refusals at each count, in ascending order.
    pub(crate) points: Vec<CurvePoint>,
}

/// Numbers of a limit.
#[derive(Debug, Clone)]
pub(crate) struct Rate {
    pub(crate) count: u64,
    /// Window as in a policy: `60s`, `concurrency`.
    pub(crate) window: String,
    pub(crate) unit: String,
}

impl Suggestion {
    /// Returns the curves of a policy.
    pub(crate) fn all(policy: &Policy, curves: &Curves) -> Vec<Self> {
        let suggestion = |(rule, limit, curve): (&Rule, &Limit, &super::curve::LimitCurve)| Self {
            rule: rule.name().to_owned(),
            limit_name: limit.name().to_owned(),
            rate: Rate::of(limit),
            requests: curve.requests(),
            points: curve.points().collect(),
        };
        curves.iter(policy).map(suggestion).collect()
    }

    /// Adds the points of a second pass.
    pub(crate) fn refine(&mut self, points: impl Iterator<Item = CurvePoint>) {
        self.points.extend(points);
        self.points.sort_unstable_by_key(|point| point.count);
        self.points.dedup_by_key(|point| point.count);
    }

    /// Returns the counts that a second pass should try.
    pub(crate) fn next_values(&self) -> Vec<u64> {
        let bracket = |thousandths| {
            let high = self.smallest(thousandths)?;
            let below = self.points.iter().rev().find(|point| point.count < high)?;
            Some((below.count, high))
        };
        let brackets: Vec<(u64, u64)> =
            [ONE_PER_MILLE, ONE_PERCENT].into_iter().filter_map(bracket).collect();
        refined_values(&brackets)
    }

    /// Returns the smallest tried count that refuses at most this many requests in a thousand, as do all larger ones.
    /// `None` if no request matched the rule, or if even the largest tried count refuses more.
    pub(crate) fn smallest(&self, thousandths: u64) -> Option<u64> {
        let fits = |point: &&CurvePoint| {
            u128::from(point.refused) * 1000 <= u128::from(self.requests) * u128::from(thousandths)
        };
        let fitting = self.points.iter().rev().take_while(fits);
        fitting.last().map(|point| point.count).filter(|_| self.requests > 0)
    }

    /// Returns the refusals at the limit's own count.
    pub(crate) fn refused_now(&self) -> Option<u64> {
        self.points.iter().find(|point| point.count == self.rate.count).map(|point| point.refused)
    }
}

impl Rate {
    fn of(limit: &Limit) -> Self {
        let spec = limit.spec();
        let window = match (limit.ttl(), spec.align) {
            (Some(_), _) => "concurrency".to_owned(),
            (None, Some(unit)) => unit.as_str().to_owned(),
            (None, None) => window_text(limit.window()),
        };
        Self { count: limit.count(), window, unit: limit.unit().to_string() }
    }
}

/// Writes a window as policies do.
fn window_text(window: std::time::Duration) -> String {
    let millis = window.as_millis();
    for (unit, length) in [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)] {
        if millis >= length && millis.is_multiple_of(length) {
            let count = millis / length;
            return if count == 1 { unit.to_owned() } else { format!("{count}{unit}") };
        }
    }
    format!("{millis}ms")
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.unit.as_str() {
            "requests" => write!(f, "{}/{}", self.count, self.window),
            unit => write!(f, "{} {unit}/{}", self.count, self.window),
        }
    }
}
