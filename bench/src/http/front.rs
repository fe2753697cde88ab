//! The main question: how close to doing nothing, and how far ahead of the peer.

use super::contest::Contest;
use super::figures::Figures;
use super::policy::Policy;
use crate::Outcome;
use crate::markdown::{Table, Target};
use crate::rounds::Rounds;

const OF_CONSTANT: Target = Target::AtLeast(0.9);
const OF_PEER: Target = Target::Above(1.0);

/// The figures of all three.
#[derive(Debug, Clone)]
pub struct Front {
    /// Of tollgate.
    pub tollgate: Figures,
    /// Of throttlecrab's server.
    pub throttlecrab: Figures,
    /// Of axum answering a constant.
    pub constant: Figures,
    /// The length of tollgate's answer, and of the constant.
    pub body_bytes: f64,
}

impl Front {
    /// Takes them.
    ///
    /// # Errors
    /// A server that does not start or does not let every request pass.
    pub fn measure(contest: Contest<'_>) -> Outcome<Self> {
        let keys = contest.scale.keys;
        let tollgate = contest.stage.tollgate(Policy::Default, keys)?;
        let body_bytes = contest.fill(&tollgate)?.body_bytes;
        let throttlecrab = contest.stage.throttlecrab(keys)?;
        contest.fill(&throttlecrab)?;
        let constant = contest.stage.constant(body_bytes, keys)?;
        let [tollgate, throttlecrab, constant] =
            contest.rounds([&tollgate, &throttlecrab, &constant])?;
        Ok(Self { tollgate, throttlecrab, constant, body_bytes })
    }

    fn named(&self) -> [(&'static str, &Figures); 3] {
        [
            ("tollgate", &self.tollgate),
            ("throttlecrab-server", &self.throttlecrab),
            ("axum answering a constant", &self.constant),
        ]
    }

    /// The figures as a table.
    #[must_use]
    pub fn figures(&self) -> Table {
        let mut table = Table::new([
            "",
            "requests/s",
            "× axum constant",
            "server CPU µs a request",
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

    /// The ratios as a table, with targets. Time has no target; it is steadier, and its ratios are
    /// turned so that more is better here too.
    #[must_use]
    pub fn ratios(&self) -> Table {
        let Self { tollgate, throttlecrab, constant, .. } = self;
        let mut table = Table::new(["tollgate", "requests/s", "target", "", "server CPU, inverse"]);
        for (name, other, target) in [
            ("× axum constant", constant, OF_CONSTANT),
            ("× throttlecrab-server", throttlecrab, OF_PEER),
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

    /// The most that the load generator used of its core: near 1 it would be what is measured.
    #[must_use]
    pub fn busiest_load(&self) -> f64 {
        let shares = self.named().map(|(_, figures)| figures.load_share.most());
        shares.into_iter().collect::<Rounds>().most()
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

    fn front() -> Front {
        Front {
            tollgate: figures([92_000.0, 90_000.0, 40_000.0], 10.0),
            throttlecrab: figures([60_000.0, 50_000.0, 50_000.0], 14.0),
            constant: figures([100_000.0, 100_000.0, 50_000.0], 9.0),
            body_bytes: 300.0,
        }
    }

    #[test]
    fn rows_have_medians_with_their_spread() {
        let text = front().figures().to_string();
        let row = "| tollgate | 90000 (40000–92000) | 0.90 (0.80–0.92) | 10.00 (10.00–10.00) | \
                   500 (500–500) | 800 (800–800) | 900 (900–900) |\n";
        assert!(text.contains(row), "{text}");
        assert!(
            text.contains(
                "| axum answering a constant | 100000 (50000–100000) | 1.00 (1.00–1.00) |"
            )
        );
    }

    #[test]
    fn ratios_are_held_against_their_targets() {
        let text = front().ratios().to_string();
        for row in [
            "| × axum constant | 0.90 (0.80–0.92) | ≥ 0.9 | met | 0.90 (0.90–0.90) |\n",
            "| × throttlecrab-server | 1.53 (0.80–1.80) | > 1 | met | 1.40 (1.40–1.40) |\n",
        ] {
            assert!(text.contains(row), "{text}");
        }
    }

    #[test]
    fn the_busiest_load_is_of_any_server_and_round() {
        assert!((front().busiest_load() - 0.5).abs() < 1e-9);
    }
}
