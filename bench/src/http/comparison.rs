//! The main comparison: tollgate, throttlecrab-server and a constant response.

use super::figures::Figures;
use super::policy::Policy;
use super::runner::Runner;
use crate::Outcome;
use crate::markdown::{Table, Target};
use crate::rounds::Rounds;

const VS_CONSTANT: Target = Target::AtLeast(0.9);
const VS_PEER: Target = Target::Above(1.0);

/// Figures of all three servers.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Figures of tollgate.
    pub tollgate: Figures,
    /// Figures of throttlecrab-server.
    pub throttlecrab: Figures,
    /// Figures of axum with a constant response.
    pub constant: Figures,
    /// Body length of tollgate's response and of the constant one, in bytes.
    pub body_bytes: f64,
}

impl Comparison {
    /// Measures all three servers.
    ///
    /// # Errors
    /// A server does not start, or does not allow every request.
    pub fn measure(runner: Runner<'_>) -> Outcome<Self> {
        let keys = runner.scale.keys;
        let tollgate = runner.programs.tollgate(Policy::Default, keys)?;
        let body_bytes = runner.fill(&tollgate)?.body_bytes;
        let throttlecrab = runner.programs.throttlecrab(keys)?;
        runner.fill(&throttlecrab)?;
        let constant = runner.programs.constant(body_bytes, keys)?;
        let [tollgate, throttlecrab, constant] =
            runner.rounds([&tollgate, &throttlecrab, &constant])?;
        Ok(Self { tollgate, throttlecrab, constant, body_bytes })
    }

    fn named(&self) -> [(&'static str, &Figures); 3] {
        [
            ("tollgate", &self.tollgate),
            ("throttlecrab-server", &self.throttlecrab),
            ("axum, constant response", &self.constant),
        ]
    }

    /// Returns the figures as a table.
    #[must_use]
    pub fn figures(&self) -> Table {
        let mut table = Table::new([
            "",
            "requests/s",
            "× axum constant",
            "server CPU µs per request",
            "p50 µs",
            "p99 µs",
            "p99.9 µs",
        ]);
        for (name, figures) in self.named() {
            let ratio = figures.per_second.relative_to(&self.constant.per_second);
            table.push([
                name.to_owned(),
                figures.per_second.to_string(),
                format!("{ratio:.2}"),
                format!("{:.2}", figures.server_micros),
                figures.p50.to_string(),
                figures.p99.to_string(),
                figures.p999.to_string(),
            ]);
        }
        table
    }

    /// Returns the ratios as a table, with targets. CPU time has no target but varies less; its
    /// ratios are inverted so that higher is better.
    #[must_use]
    pub fn ratios(&self) -> Table {
        let Self { tollgate, throttlecrab, constant, .. } = self;
        let mut table = Table::new(["tollgate", "requests/s", "target", "", "server CPU, inverse"]);
        for (name, other, target) in [
            ("× axum constant", constant, VS_CONSTANT),
            ("× throttlecrab-server", throttlecrab, VS_PEER),
        ] {
            let ratio = tollgate.per_second.relative_to(&other.per_second);
            let time = other.server_micros.relative_to(&tollgate.server_micros);
            let verdict = target.verdict(ratio.median()).to_owned();
            let name = name.to_owned();
            table.push([
                name,
                format!("{ratio:.2}"),
                target.to_string(),
                verdict,
                format!("{time:.2}"),
            ]);
        }
        table
    }

    /// Returns the maximum share of its core that the load generator used. Near 1 the load
    /// generator itself would be the bottleneck.
    #[must_use]
    pub fn max_load_share(&self) -> f64 {
        let shares = self.named().map(|(_, figures)| figures.load_share.max());
        shares.into_iter().collect::<Rounds>().max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::sample::Sample;

    fn figures(rates: [f64; 3], server_micros: f64) -> Figures {
        let mut figures = Figures::default();
        for per_second in rates {
            let sample = Sample {
                answered: 1.0,
                body_bytes: 300.0,
                per_second,
                p50: 500.0,
                p99: 800.0,
                p999: 900.0,
                server_micros,
                load_share: per_second / 200_000.0,
            };
            figures.push(&sample);
        }
        figures
    }

    fn comparison() -> Comparison {
        Comparison {
            tollgate: figures([92_000.0, 90_000.0, 40_000.0], 10.0),
            throttlecrab: figures([60_000.0, 50_000.0, 50_000.0], 14.0),
            constant: figures([100_000.0, 100_000.0, 50_000.0], 9.0),
            body_bytes: 300.0,
        }
    }

    #[test]
    fn rows_show_median_and_range() {
        let text = comparison().figures().to_string();
        let row = "| tollgate | 90000 (40000–92000) | 0.90 (0.80–0.92) | 10.00 (10.00–10.00) | \
                   500 (500–500) | 800 (800–800) | 900 (900–900) |\n";
        assert!(text.contains(row), "{text}");
        assert!(
            text.contains("| axum, constant response | 100000 (50000–100000) | 1.00 (1.00–1.00) |")
        );
    }

    #[test]
    fn ratios_are_compared_with_targets() {
        let text = comparison().ratios().to_string();
        for row in [
            "| × axum constant | 0.90 (0.80–0.92) | ≥ 0.9 | met | 0.90 (0.90–0.90) |\n",
            "| × throttlecrab-server | 1.53 (0.80–1.80) | > 1 | met | 1.40 (1.40–1.40) |\n",
        ] {
            assert!(text.contains(row), "{text}");
        }
    }

    #[test]
    fn busiest_load_is_the_maximum_of_all_servers_and_rounds() {
        assert!((comparison().max_load_share() - 0.5).abs() < 1e-9);
    }
}
