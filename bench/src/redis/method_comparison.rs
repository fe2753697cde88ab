//! The main comparison: many callers, by method.

use super::figures::Figures;
use super::limits::Limits;
use super::method::Method;
use super::runner::{Keys, Runner, Scenario};
use crate::Outcome;
use crate::markdown::{Table, Target};
use crate::rounds::Rounds;

/// Figures of one method with one number of callers.
#[derive(Debug, Clone)]
pub struct Row {
    callers: u32,
    method: Method,
    /// The figures.
    pub figures: Figures,
    /// Figures of the baseline, one shared connection.
    baseline: Figures,
}

/// Measures every method, with both numbers of callers.
///
/// # Errors
/// A decision is wrong.
pub fn measure(runner: Runner<'_>, keys: Keys) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for callers in runner.scale.callers {
        let methods = runner.deployment.methods();
        let scenarios: Vec<Scenario> = methods
            .iter()
            .map(|method| Scenario::always_allowed(*method, callers, keys, Limits::TokenBucket))
            .collect();
        let results: Vec<_> = methods.into_iter().zip(runner.rounds(&scenarios)?).collect();
        let baseline = results.iter().find(|(method, _)| *method == Method::Multiplexed);
        let baseline = baseline.map(|(_, figures)| figures.clone()).unwrap_or_default();
        rows.extend(results.into_iter().map(|(method, figures)| Row {
            callers,
            method,
            figures,
            baseline: baseline.clone(),
        }));
    }
    Ok(rows)
}

impl Row {
    fn label(&self) -> String {
        format!("{} callers, {}", self.callers, self.method.label())
    }

    fn ratio_to_baseline(&self, figure: impl Fn(&Figures) -> &Rounds) -> Rounds {
        figure(&self.figures).relative_to(figure(&self.baseline))
    }
}

/// Returns the figures as a table.
#[must_use]
pub fn figures(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "",
        "decisions/s",
        "p50 µs",
        "p99 µs",
        "Redis CPU µs per decision",
        "client CPU µs per decision",
    ]);
    for row in rows {
        let Figures { per_second, p50, p99, redis_micros, client_micros, .. } = &row.figures;
        table.push([
            row.label(),
            per_second.to_string(),
            p50.to_string(),
            p99.to_string(),
            format!("{redis_micros:.2}"),
            format!("{client_micros:.2}"),
        ]);
    }
    table
}

/// Returns the ratios to the baseline as a table.
#[must_use]
pub fn ratios(rows: &[Row]) -> Table {
    let baseline = format!("× {}", Method::Multiplexed.label());
    let mut table = Table::new([&baseline, "decisions/s", "p50", "p99", "Redis CPU", "client CPU"]);
    for row in rows.iter().filter(|row| row.method != Method::Multiplexed) {
        let ratios = [
            row.ratio_to_baseline(|figures| &figures.per_second),
            row.ratio_to_baseline(|figures| &figures.p50),
            row.ratio_to_baseline(|figures| &figures.p99),
            row.ratio_to_baseline(|figures| &figures.redis_micros),
            row.ratio_to_baseline(|figures| &figures.client_micros),
        ];
        let cells = ratios.into_iter().map(|ratio| format!("{ratio:.2}"));
        table.push(std::iter::once(row.label()).chain(cells));
    }
    table
}

/// Returns tollgate's targets as a table.
#[must_use]
pub fn targets(rows: &[Row]) -> Table {
    let mut table = Table::new(["tollgate", "ratio", "target", ""]);
    let mut hold = |label: String, ratio: &Rounds, target: Target| {
        let verdict = target.verdict(ratio.median()).to_owned();
        table.push([label, format!("{ratio:.2}"), target.to_string(), verdict]);
    };
    let baseline = Method::Multiplexed.label();
    for row in rows.iter().filter(|row| row.method == Method::Tollgate) {
        let callers = row.callers;
        let speed = row.ratio_to_baseline(|figures| &figures.per_second);
        hold(format!("{callers} callers, decisions/s × {baseline}"), &speed, Target::AtLeast(1.4));
        let time = row.ratio_to_baseline(|figures| &figures.redis_micros);
        hold(format!("{callers} callers, Redis CPU × {baseline}"), &time, Target::AtMost(0.6));
        let p99 = row.ratio_to_baseline(|figures| &figures.p99);
        hold(format!("{callers} callers, p99 × {baseline}"), &p99, Target::AtMost(1.0));
        // With few callers the native module may be faster, so only the most callers have this
        // target.
        let cell = rows.iter().rfind(|row| row.method == Method::Cell);
        if let Some(cell) = cell.filter(|cell| cell.callers == callers) {
            let speed = row.figures.per_second.relative_to(&cell.figures.per_second);
            let label = format!("{callers} callers, decisions/s × {}", Method::Cell.label());
            hold(label, &speed, Target::Above(1.0));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::sample::Sample;

    fn figures_of(per_second: f64, redis_micros: f64) -> Figures {
        let mut figures = Figures::default();
        figures.push(&Sample {
            answered: 10.0,
            allowed: 10.0,
            commands: 30.0,
            script_calls: 2.0,
            per_second,
            p50: 300.0,
            p99: 500.0,
            redis_micros,
            client_micros: 4.0,
        });
        figures
    }

    fn rows() -> Vec<Row> {
        let baseline = figures_of(100_000.0, 8.0);
        let all = [
            (Method::Tollgate, figures_of(150_000.0, 5.0)),
            (Method::Multiplexed, baseline.clone()),
            (Method::Cell, figures_of(160_000.0, 3.0)),
        ];
        let row =
            |(method, figures)| Row { callers: 64, method, figures, baseline: baseline.clone() };
        all.into_iter().map(row).collect()
    }

    #[test]
    fn every_method_is_compared_with_the_baseline() {
        let text = ratios(&rows()).to_string();
        let row = "| 64 callers, tollgate | 1.50 (1.50–1.50) | 1.00 (1.00–1.00) | 1.00 (1.00–1.00) | \
                   0.62 (0.62–0.62) | 1.00 (1.00–1.00) |\n";
        assert!(text.contains(row), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
        assert_eq!(figures(&rows()).to_string().lines().count(), 5);
    }

    #[test]
    fn targets_table_shows_verdicts() {
        let text = targets(&rows()).to_string();
        for end in [
            "1.50 (1.50–1.50) | ≥ 1.4 | met |\n",
            "0.62 (0.62–0.62) | ≤ 0.6 | not met |\n",
            "1.00 (1.00–1.00) | ≤ 1 | met |\n",
            "0.94 (0.94–0.94) | > 1 | not met |\n",
        ] {
            assert!(text.contains(end), "{text}");
        }
    }
}
