//! Decisions from leases, and what they cost keys that are not leased.

use super::figures::Figures;
use super::limits::Limits;
use super::method::Method;
use super::runner::{Keys, Runner, Scenario};
use crate::Outcome;
use crate::markdown::{Table, Target};
use crate::rounds::Rounds;

/// Figures of a hot key and of cold keys, with and without leases.
#[derive(Debug, Clone)]
pub struct Leases {
    hot_leased: Figures,
    hot: Figures,
    hot_baseline: Figures,
    cold_leased: Figures,
    cold: Figures,
}

impl Leases {
    /// Measures all of them in turn.
    ///
    /// # Errors
    /// A decision is wrong.
    pub fn measure(runner: Runner<'_>) -> Outcome<Self> {
        let [callers, _] = runner.scale.callers;
        let scenario =
            |method, keys, limits| Scenario::always_allowed(method, callers, keys, limits);
        let figures = runner.rounds(&[
            scenario(Method::TollgateLeased, Keys::Hot, Limits::RefillingBucket),
            scenario(Method::Tollgate, Keys::Hot, Limits::TokenBucket),
            scenario(Method::Multiplexed, Keys::Hot, Limits::TokenBucket),
            scenario(Method::TollgateLeased, Keys::Many, Limits::TokenBucket),
            scenario(Method::Tollgate, Keys::Many, Limits::TokenBucket),
        ])?;
        let figures: [Figures; 5] = figures.try_into().map_err(|_| "a scenario has no figures")?;
        let [hot_leased, hot, hot_baseline, cold_leased, cold] = figures;
        Ok(Self { hot_leased, hot, hot_baseline, cold_leased, cold })
    }

    /// Returns all figures.
    pub fn figures(&self) -> impl Iterator<Item = &Figures> {
        let Self { hot_leased, hot, hot_baseline, cold_leased, cold } = self;
        [hot_leased, hot, hot_baseline, cold_leased, cold].into_iter()
    }

    /// Returns the figures as a table.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut table = Table::new([
            "",
            "decisions/s",
            "p50 µs",
            "p99 µs",
            "calls per decision",
            "Redis CPU µs per decision",
            "client CPU µs per decision",
        ]);
        let labels = [
            ("hot key", Method::TollgateLeased),
            ("hot key", Method::Tollgate),
            ("hot key", Method::Multiplexed),
            ("cold keys", Method::TollgateLeased),
            ("cold keys", Method::Tollgate),
        ];
        for ((keys, method), figures) in labels.into_iter().zip(self.figures()) {
            let Figures { per_second, p50, p99, redis_micros, client_micros, script_calls, .. } =
                figures;
            table.push([
                format!("{keys}, {}", method.label()),
                per_second.to_string(),
                format!("{p50:.1}"),
                format!("{p99:.1}"),
                format!("{script_calls:.5}"),
                format!("{redis_micros:.4}"),
                format!("{client_micros:.2}"),
            ]);
        }
        table
    }

    /// Returns the targets as a table.
    #[must_use]
    pub fn targets(&self) -> Table {
        let mut table = Table::new(["tollgate, leases", "figure", "target", ""]);
        let mut hold = |label: String, figure: &Rounds, digits: usize, target: Target| {
            let verdict = target.verdict(figure.median()).to_owned();
            table.push([label, format!("{figure:.digits$}"), target.to_string(), verdict]);
        };
        let baseline = Method::Multiplexed.label();
        let speed = self.hot_leased.per_second.relative_to(&self.hot_baseline.per_second);
        hold(format!("hot key, decisions/s × {baseline}"), &speed, 1, Target::AtLeast(20.0));
        hold("hot key, p50 µs".to_owned(), &self.hot_leased.p50, 1, Target::AtMost(2.0));
        let calls = &self.hot_leased.script_calls;
        hold("hot key, calls per decision".to_owned(), calls, 5, Target::AtMost(0.01));
        let without = Method::Tollgate.label();
        let calls = self.cold_leased.script_calls.relative_to(&self.cold.script_calls);
        table.push(no_more_than_without(format!("cold keys, calls × {without}"), &calls));
        let cpu = self.cold_leased.redis_micros.relative_to(&self.cold.redis_micros);
        table.push(no_more_than_without(format!("cold keys, Redis CPU × {without}"), &cpu));
        table
    }
}

/// Returns the row of a cost relative to that without leases. The ratio of equal costs is above 1 in about half of the
/// rounds, so the target is not met if it is above 1 in all of them.
fn no_more_than_without(label: String, ratio: &Rounds) -> [String; 4] {
    let target = Target::AtMost(1.0);
    let verdict = target.verdict(ratio.min()).to_owned();
    [label, format!("{ratio:.4}"), format!("{target} in a round"), verdict]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_of_cold_keys_is_too_high_if_it_is_in_every_round() {
        let row = |ratios: [f64; 3]| {
            let [_, figure, target, verdict] =
                no_more_than_without(String::new(), &ratios.into_iter().collect());
            assert_eq!(target, "≤ 1 in a round");
            (figure, verdict)
        };
        let met = ("1.0002 (0.9996–1.0500)".to_owned(), "met".to_owned());
        assert_eq!(row([1.0002, 1.05, 0.9996]), met);
        let not_met = ("1.0300 (1.0001–1.0500)".to_owned(), "not met".to_owned());
        assert_eq!(row([1.0001, 1.05, 1.03]), not_met);
    }
}
