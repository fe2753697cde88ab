//! The figures of several servers beside each other.

use super::candidate::Candidate;
use super::figures::Figures;
use super::runner::Runner;
use crate::Outcome;
use crate::markdown::{Table, Target};
use crate::rounds::Rounds;

/// Servers with the same load. The first is tollgate, the last is the baseline.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The load in the tables, such as `P=16`; may be empty.
    pub load: String,
    /// The servers.
    pub rows: Vec<Row>,
}

/// One server.
#[derive(Debug, Clone)]
pub struct Row {
    /// The server.
    pub contender: Contender,
    /// Its figures.
    pub figures: Figures,
}

/// A server in the tables.
#[derive(Debug, Clone)]
pub struct Contender {
    /// The name of the server.
    pub name: &'static str,
    /// The name after `×`, in ratios to this server.
    pub short: &'static str,
    /// Target for tollgate's rate relative to that of this server; `None` for no row in the table of ratios.
    pub target: Option<Target>,
}

impl Comparison {
    /// Creates a comparison of servers and their figures.
    pub fn new(
        load: String,
        contenders: impl IntoIterator<Item = Contender>,
        figures: impl IntoIterator<Item = Figures>,
    ) -> Self {
        let rows = contenders.into_iter().zip(figures);
        let rows = rows.map(|(contender, figures)| Row { contender, figures }).collect();
        Self { load, rows }
    }

    fn figures(&self) -> Table {
        let baseline = self.rows.last();
        let ratio_column =
            baseline.map(|row| format!("× {}", row.contender.short)).unwrap_or_default();
        let mut table = Table::new([
            self.load.as_str(),
            "requests/s",
            &ratio_column,
            "server CPU µs per request",
            "p50 µs",
            "p99 µs",
            "p99.9 µs",
            "server core",
            "load core",
        ]);
        for Row { contender, figures } in &self.rows {
            let ratio = baseline.map(|row| figures.per_second.relative_to(&row.figures.per_second));
            table.push([
                contender.name.to_owned(),
                figures.per_second.to_string(),
                format!("{:.2}", ratio.unwrap_or_default()),
                format!("{:.2}", figures.server_micros),
                figures.p50.to_string(),
                figures.p99.to_string(),
                figures.p999.to_string(),
                percent(&figures.server_share),
                percent(&figures.load_share),
            ]);
        }
        table
    }

    /// Adds the ratios of tollgate to the other servers, with targets. CPU time has no target but varies less; its ratios
    /// are inverted so that higher is better.
    fn push_ratios(&self, table: &mut Table) {
        let Some((Row { figures: tollgate, .. }, others)) = self.rows.split_first() else { return };
        for Row { contender, figures: other } in others {
            let Some(target) = contender.target else { continue };
            let ratio = tollgate.per_second.relative_to(&other.per_second);
            let time = other.server_micros.relative_to(&tollgate.server_micros);
            let load = if self.load.is_empty() { "" } else { &format!(", {}", self.load) };
            table.push([
                format!("× {}{load}", contender.short),
                format!("{ratio:.2}"),
                target.to_string(),
                target.verdict(ratio.median()).to_owned(),
                format!("{time:.2}"),
            ]);
        }
    }
}

/// Measures the candidates once per load, which is the number of requests in flight on each connection.
///
/// # Errors
/// A response is not the expected one.
pub fn measure<const N: usize>(
    runner: &Runner,
    candidates: [&Candidate; N],
    loads: impl IntoIterator<Item = (u32, String, [Contender; N])>,
) -> Outcome<Vec<Comparison>> {
    let mut comparisons = Vec::new();
    for (in_flight, load, contenders) in loads {
        eprintln!("{load}");
        let figures = runner.rounds(candidates, in_flight)?;
        comparisons.push(Comparison::new(load, contenders, figures));
    }
    Ok(comparisons)
}

/// Returns one table of figures per load, and a table of all ratios.
#[must_use]
pub fn tables(comparisons: &[Comparison]) -> Vec<Table> {
    let mut ratios = Table::new(["tollgate", "requests/s", "target", "", "server CPU, inverse"]);
    comparisons.iter().for_each(|comparison| comparison.push_ratios(&mut ratios));
    comparisons.iter().map(Comparison::figures).chain([ratios]).collect()
}

/// Returns the maximum share of its core that the load generator used, in percent. Near 100 the load generator itself
/// would be the bottleneck.
#[must_use]
pub fn max_load_percent(comparisons: &[Comparison]) -> f64 {
    let rows = comparisons.iter().flat_map(|comparison| &comparison.rows);
    rows.map(|row| row.figures.load_share.max()).collect::<Rounds>().max() * 100.0
}

/// Returns all figures, to check that they are valid.
#[must_use]
pub fn all_figures(comparisons: &[Comparison]) -> Vec<f64> {
    let rows = comparisons.iter().flat_map(|comparison| &comparison.rows);
    let rounds = rows.flat_map(|row| row.figures.all());
    rounds.flat_map(|rounds| [rounds.min(), rounds.median(), rounds.max()]).collect()
}

fn percent(share: &Rounds) -> String {
    format!("{:.0} %", share.median() * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::sample::Sample;

    fn figures(rates: [f64; 3], server_micros: f64) -> Figures {
        let mut figures = Figures::default();
        for per_second in rates {
            let sample = Sample {
                answered: 1.0,
                payload_bytes: 300.0,
                per_second,
                p50: 500.0,
                p99: 800.0,
                p999: 900.0,
                server_micros,
                server_share: 0.984,
                load_share: per_second / 200_000.0,
            };
            figures.push(&sample);
        }
        figures
    }

    fn comparison(load: &str) -> Comparison {
        let contenders = [
            Contender { name: "tollgate", short: "tollgate", target: None },
            Contender { name: "the peer", short: "peer", target: Some(Target::Above(1.0)) },
            Contender { name: "another", short: "another", target: None },
            Contender { name: "a constant", short: "constant", target: Some(Target::AtLeast(0.9)) },
        ];
        let peer = figures([60_000.0, 50_000.0, 50_000.0], 14.0);
        let figures = [
            figures([92_000.0, 90_000.0, 40_000.0], 10.0),
            peer.clone(),
            peer,
            figures([100_000.0, 100_000.0, 50_000.0], 9.0),
        ];
        Comparison::new(load.to_owned(), contenders, figures)
    }

    #[test]
    fn rows_show_median_and_range() {
        let text = comparison("one at a time").figures().to_string();
        assert!(text.starts_with("| one at a time | requests/s | × constant |"), "{text}");
        let row = "| tollgate | 90000 (40000–92000) | 0.90 (0.80–0.92) | 10.00 (10.00–10.00) | \
                   500 (500–500) | 800 (800–800) | 900 (900–900) | 98 % | 45 % |\n";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("| a constant | 100000 (50000–100000) | 1.00 (1.00–1.00) |"));
    }

    #[test]
    fn ratios_are_compared_with_targets() {
        for (load, label) in [("", ""), ("16 at a time", ", 16 at a time")] {
            let tables = tables(&[comparison(load)]);
            let text = tables[1].to_string();
            for (name, rest) in [
                ("× peer", "1.53 (0.80–1.80) | > 1 | met | 1.40 (1.40–1.40)"),
                ("× constant", "0.90 (0.80–0.92) | ≥ 0.9 | met | 0.90 (0.90–0.90)"),
            ] {
                assert!(text.contains(&format!("| {name}{label} | {rest} |\n")), "{text}");
            }
            assert!(!text.contains("another"), "no row without a target\n{text}");
        }
    }

    #[test]
    fn busiest_load_is_the_maximum_of_all_servers_and_rounds() {
        assert!((max_load_percent(&[comparison("")]) - 50.0).abs() < 1e-9);
    }
}
