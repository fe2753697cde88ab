//! Comparison of measured counts with the baseline.

use std::fmt;

use super::baseline::{Baseline, Environment};
use super::path::GuardedPath;

/// Maximum growth, and the improvement from which on an update is suggested, in percent.
const TOLERANCE: f64 = 5.0;

/// The command that accepts the measured counts.
const UPDATE: &str = "scripts/instructions --update";

/// Measured counts beside those of the baseline.
#[derive(Debug)]
pub struct Comparison<'c> {
    /// The committed counts.
    pub baseline: &'c Baseline,
    /// The measured counts.
    pub now: &'c Baseline,
}

impl Comparison<'_> {
    /// Returns one message per path that has grown, or is missing in the baseline. Empty if the environments differ: the
    /// counts are then not comparable.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        if self.baseline.environment != self.now.environment {
            return Vec::new();
        }
        self.now.counts.iter().filter_map(|(path, now)| self.failure(*path, *now)).collect()
    }

    /// Whether a path has grown and another measurement may be lower, because the machine was busy.
    #[must_use]
    pub fn may_be_noise(&self, path: GuardedPath) -> bool {
        let count = self.now.count(path);
        path.depends_on_time() && count.is_some_and(|now| self.failure(path, now).is_some())
    }

    fn failure(&self, path: GuardedPath, now: u64) -> Option<String> {
        let Some(before) = self.baseline.count(path) else {
            return Some(format!("{path}: {now} instructions, and no baseline; run {UPDATE}"));
        };
        let change = percent(before, now);
        (change > TOLERANCE).then(|| {
            format!(
                "{path}: {now} instructions per decision, {before} in the baseline: {change:+.1} %, more than \
                 {TOLERANCE} %. Remove the added work, or accept it with {UPDATE}"
            )
        })
    }
}

/// The change in percent.
fn percent(before: u64, now: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    let [before, now] = [before as f64, now as f64];
    100.0 * (now - before) / before
}

/// The table and hints, without the failures.
impl fmt::Display for Comparison<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<14} {:>9} {:>9} {:>9}", "path", "baseline", "now", "change")?;
        let mut is_better = false;
        for &(path, now) in &self.now.counts {
            let before = self.baseline.count(path);
            let change = before.map(|before| percent(before, now));
            is_better |= change.is_some_and(|change| change < -TOLERANCE);
            let before = before.map_or_else(|| "none".to_owned(), |count| count.to_string());
            let change = change.map_or_else(String::new, |change| format!("{change:+.1} %"));
            writeln!(f, "{path:<14} {before:>9} {now:>9} {change:>9}")?;
        }
        let (then, now) = (&self.baseline.environment, &self.now.environment);
        if then != now {
            writeln!(f, "Not compared: the baseline is of {}; this is {}.", line(then), line(now))
        } else if is_better {
            writeln!(
                f,
                "Paths became faster by more than {TOLERANCE} %: run {UPDATE}, so that this is kept."
            )
        } else {
            Ok(())
        }
    }
}

fn line(Environment { rustc, libc, cpu }: &Environment) -> String {
    format!("{rustc}, {libc}, {cpu}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(rustc: &str, counts: &[(GuardedPath, u64)]) -> Baseline {
        let environment =
            Environment { rustc: rustc.to_owned(), libc: "libc".to_owned(), cpu: "cpu".to_owned() };
        Baseline { environment, counts: counts.to_vec() }
    }

    #[test]
    fn only_growth_of_paths_that_depend_on_time_is_measured_again() {
        let [baseline, now] =
            [200, 300].map(|count| counts("1", &[(GuardedPath::LeaseTake, count)]));
        assert!(Comparison { baseline: &baseline, now: &now }.may_be_noise(GuardedPath::LeaseTake));
        assert!(!Comparison { baseline: &now, now: &now }.may_be_noise(GuardedPath::LeaseTake));
        assert!(!Comparison { baseline: &now, now: &now }.may_be_noise(GuardedPath::HttpCheck));
    }

    #[test]
    fn growth_of_more_than_five_percent_fails() {
        let baseline =
            counts("1", &[(GuardedPath::LocalCheck, 200), (GuardedPath::LocalTake, 400)]);
        let now = counts("1", &[(GuardedPath::LocalCheck, 210), (GuardedPath::LocalTake, 421)]);
        let comparison = Comparison { baseline: &baseline, now: &now };
        assert_eq!(
            comparison.failures(),
            [
                "local_take: 421 instructions per decision, 400 in the baseline: +5.2 %, more than 5 %. Remove the \
              added work, or accept it with scripts/instructions --update"
            ]
        );
        assert!(!comparison.may_be_noise(GuardedPath::LocalTake), "nothing in it depends on time");
        let table = comparison.to_string();
        assert!(table.contains("local_check          200       210    +5.0 %\n"), "{table}");
        assert!(!table.contains("faster"), "{table}");
    }

    #[test]
    fn path_without_baseline_fails() {
        let (baseline, now) = (counts("1", &[]), counts("1", &[(GuardedPath::LocalCheck, 210)]));
        let failures = Comparison { baseline: &baseline, now: &now }.failures();
        let message =
            "local_check: 210 instructions, and no baseline; run scripts/instructions --update";
        assert_eq!(failures, [message]);
    }

    #[test]
    fn other_environment_is_reported_and_does_not_fail() {
        let baseline = counts("1", &[(GuardedPath::LocalCheck, 200)]);
        let now = counts("2", &[(GuardedPath::LocalCheck, 900)]);
        let comparison = Comparison { baseline: &baseline, now: &now };
        assert!(comparison.failures().is_empty());
        let table = comparison.to_string();
        assert!(
            table.ends_with(
                "Not compared: the baseline is of 1, libc, cpu; this is 2, libc, cpu.\n"
            ),
            "{table}"
        );
    }

    #[test]
    fn improvement_suggests_an_update() {
        let baseline = counts("1", &[(GuardedPath::LocalCheck, 200)]);
        let now = counts("1", &[(GuardedPath::LocalCheck, 189)]);
        let comparison = Comparison { baseline: &baseline, now: &now };
        assert!(comparison.failures().is_empty());
        assert!(comparison.to_string().contains("run scripts/instructions --update, so that"));
    }
}
