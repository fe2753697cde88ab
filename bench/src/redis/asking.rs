//! The main question: many callers, by the way they ask.

use super::contest::{Contest, Entry, Keys};
use super::figures::Figures;
use super::limits::Limits;
use super::way::Way;
use crate::Outcome;
use crate::markdown::{Table, Target};
use crate::rounds::Rounds;

/// The figures of so many callers, tollgate's first.
#[derive(Debug, Clone)]
pub struct Row {
    callers: u32,
    way: Way,
    /// What came out.
    pub figures: Figures,
    /// What all of these are compared with.
    usual: Figures,
}

/// Takes the figures of every way, with both numbers of callers.
///
/// # Errors
/// An answer that is not the right one.
pub fn measure(contest: Contest<'_>, keys: Keys) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for callers in contest.scale.callers {
        let ways = contest.stage.ways();
        let entries: Vec<Entry> = ways
            .iter()
            .map(|way| Entry::plenty(*way, callers, keys, Limits::TokenBucket))
            .collect();
        let taken: Vec<_> = ways.into_iter().zip(contest.rounds(&entries)?).collect();
        let usual = taken.iter().find(|(way, _)| *way == Way::Multiplexed);
        let usual = usual.map(|(_, figures)| figures.clone()).unwrap_or_default();
        rows.extend(taken.into_iter().map(|(way, figures)| Row {
            callers,
            way,
            figures,
            usual: usual.clone(),
        }));
    }
    Ok(rows)
}

impl Row {
    fn label(&self) -> String {
        format!("{} callers, {}", self.callers, self.way.label())
    }

    fn of_usual(&self, figure: impl Fn(&Figures) -> &Rounds) -> Rounds {
        figure(&self.figures).relative_to(figure(&self.usual))
    }
}

/// The figures as a table.
#[must_use]
pub fn figures(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "",
        "decisions/s",
        "p50 µs",
        "p99 µs",
        "Redis CPU µs a decision",
        "client CPU µs a decision",
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

/// The ratios to the usual way as a table.
#[must_use]
pub fn ratios(rows: &[Row]) -> Table {
    let usual = format!("× {}", Way::Multiplexed.label());
    let mut table = Table::new([&usual, "decisions/s", "p50", "p99", "Redis CPU", "client CPU"]);
    for row in rows.iter().filter(|row| row.way != Way::Multiplexed) {
        let ratios = [
            row.of_usual(|figures| &figures.per_second),
            row.of_usual(|figures| &figures.p50),
            row.of_usual(|figures| &figures.p99),
            row.of_usual(|figures| &figures.redis_micros),
            row.of_usual(|figures| &figures.client_micros),
        ];
        let cells = ratios.into_iter().map(|ratio| format!("{ratio:.2}"));
        table.push(std::iter::once(row.label()).chain(cells));
    }
    table
}

/// What tollgate has to reach, as a table.
#[must_use]
pub fn targets(rows: &[Row]) -> Table {
    let mut table = Table::new(["tollgate", "ratio", "target", ""]);
    let mut hold = |label: String, ratio: &Rounds, target: Target| {
        let verdict = target.verdict(ratio.median()).to_owned();
        table.push([label, format!("{ratio:.2}"), target.to_string(), verdict]);
    };
    let usual = Way::Multiplexed.label();
    for row in rows.iter().filter(|row| row.way == Way::Tollgate) {
        let callers = row.callers;
        let speed = row.of_usual(|figures| &figures.per_second);
        hold(format!("{callers} callers, decisions/s × {usual}"), &speed, Target::AtLeast(1.4));
        let time = row.of_usual(|figures| &figures.redis_micros);
        hold(format!("{callers} callers, Redis CPU × {usual}"), &time, Target::AtMost(0.6));
        let p99 = row.of_usual(|figures| &figures.p99);
        hold(format!("{callers} callers, p99 × {usual}"), &p99, Target::AtMost(1.0));
        // With few callers the native module may be ahead.
        let cell = rows.iter().rfind(|row| row.way == Way::Cell);
        if let Some(cell) = cell.filter(|cell| cell.callers == callers) {
            let speed = row.figures.per_second.relative_to(&cell.figures.per_second);
            let label = format!("{callers} callers, decisions/s × {}", Way::Cell.label());
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
            per_second,
            p50: 300.0,
            p99: 500.0,
            redis_micros,
            client_micros: 4.0,
        });
        figures
    }

    fn rows() -> Vec<Row> {
        let usual = figures_of(100_000.0, 8.0);
        let all = [
            (Way::Tollgate, figures_of(150_000.0, 5.0)),
            (Way::Multiplexed, usual.clone()),
            (Way::Cell, figures_of(160_000.0, 3.0)),
        ];
        let row = |(way, figures)| Row { callers: 64, way, figures, usual: usual.clone() };
        all.into_iter().map(row).collect()
    }

    #[test]
    fn everyone_is_compared_with_the_usual_way() {
        let text = ratios(&rows()).to_string();
        let row = "| 64 callers, tollgate | 1.50 (1.50–1.50) | 1.00 (1.00–1.00) | 1.00 (1.00–1.00) | \
                   0.62 (0.62–0.62) | 1.00 (1.00–1.00) |\n";
        assert!(text.contains(row), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
        assert_eq!(figures(&rows()).to_string().lines().count(), 5);
    }

    #[test]
    fn tollgate_is_held_against_its_targets() {
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
