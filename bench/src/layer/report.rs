//! The report on the Tower layer.

use std::fmt;

use super::candidate::Candidate;
use super::runner::{Scale, measure};
use crate::Outcome;
use crate::document::{Document, Section};
use crate::machine::{self, RunInfo};
use crate::markdown::{Table, Target};
use crate::rounds::Rounds;
use crate::scale::short_count;

/// Targets for the overhead of one limit relative to that of the peer.
const TARGETS: [(Candidate, &str, Target); 2] = [
    (Candidate::Tollgate, "with headers", Target::AtMost(1.0)),
    (Candidate::TollgateNoHeaders, "without headers", Target::AtMost(1.2)),
];

/// All results.
#[derive(Debug)]
pub struct Report {
    scale: Scale,
    run_info: RunInfo,
    tables: Vec<Figures>,
}

/// Figures for one number of clients.
#[derive(Debug)]
struct Figures {
    clients: u32,
    rows: Vec<(Candidate, Rounds)>,
}

impl Report {
    /// Runs all measurements; takes half a minute, or seconds if `is_quick`.
    ///
    /// # Errors
    /// A request was refused, or the runtime cannot start.
    pub fn measure(is_quick: bool, run_info: RunInfo) -> Outcome<Self> {
        let scale = if is_quick { Scale::QUICK } else { Scale::FULL };
        let mut tables = Vec::new();
        for clients in scale.clients {
            tables.push(Figures { clients, rows: measure(scale, clients)? });
        }
        Ok(Self { scale, run_info, tables })
    }

    fn sections(&self) -> Vec<Section> {
        let titles = ["One client", "Many clients"];
        let tables = self.tables.iter().zip(titles);
        tables.map(|(figures, title)| figures.section(title)).collect()
    }
}

impl Figures {
    fn rounds(&self, wanted: Candidate) -> Option<&Rounds> {
        self.rows.iter().find(|(candidate, _)| *candidate == wanted).map(|(_, rounds)| rounds)
    }

    /// Returns the overhead of a layer, per round.
    fn overhead(&self, candidate: Candidate) -> Option<Rounds> {
        Some(self.rounds(candidate)?.minus(self.rounds(Candidate::NoLayer)?))
    }

    /// Returns the overhead of a layer relative to that of its peer, per round.
    fn relative_overhead(&self, candidate: Candidate) -> Option<Rounds> {
        Some(self.overhead(candidate)?.relative_to(&self.overhead(candidate.peer()?)?))
    }

    fn section(&self, title: &'static str) -> Section {
        let targets = TARGETS.map(|(candidate, name, target)| {
            let ratio = self.relative_overhead(candidate).unwrap_or_default().median();
            format!("{name} {target} × the overhead of tower_governor: {}", target.verdict(ratio))
        });
        let note = format!(
            "Number of clients: {}, identified by peer address; no request is refused. Targets for one \
             limit: {}.",
            short_count(self.clients),
            targets.join("; "),
        );
        Section { title, note, tables: vec![self.table()] }
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["layer", "ns per request", "overhead, ns", "overhead × peer"]);
        for (candidate, rounds) in &self.rows {
            let overhead = self.overhead(*candidate).filter(|_| *candidate != Candidate::NoLayer);
            let ratio = self.relative_overhead(*candidate);
            let cell = |rounds: Option<Rounds>, digits: usize| {
                rounds.map_or_else(String::new, |rounds| format!("{rounds:.digits$}"))
            };
            table.push([
                candidate.name().to_owned(),
                format!("{rounds}"),
                cell(overhead, 0),
                cell(ratio, 2),
            ]);
        }
        table
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let document = Document {
            title: "Tower layer",
            run_info: &self.run_info,
            peers: ["tower_governor", "governor", "axum"].map(machine::peer).to_vec(),
            figures: format!(
                "an axum `Router` with a constant response, called in process on one thread, which \
                 isolates the overhead of a layer; median (min–max) of {} rounds of {} requests in \
                 interleaved batches of a thousand; differences and ratios are computed per round",
                self.scale.rounds,
                short_count(self.scale.requests),
            ),
            sections: self.sections(),
        };
        write!(f, "{document}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_ratios_of_the_overheads() {
        let nanos = |candidate| match candidate {
            Candidate::NoLayer => 500.0,
            Candidate::GovernorNoHeaders => 600.0,
            Candidate::Governor | Candidate::Tollgate => 900.0,
            Candidate::TollgateTwoLimits => 950.0,
            Candidate::TollgateNoHeaders => 621.0,
        };
        let rounds = |candidate| {
            let mut rounds = Rounds::default();
            rounds.push(nanos(candidate));
            (candidate, rounds)
        };
        let figures = Figures { clients: 1, rows: Candidate::ALL.map(rounds).to_vec() };
        let note = figures.section("One client").note;
        assert!(note.contains("with headers ≤ 1 × the overhead of tower_governor: met"), "{note}");
        assert!(note.contains("without headers ≤ 1.2 × the overhead of tower_governor: not met"));
    }
}
