//! The part of the benchmarks that is about the layer.

use std::fmt;

use super::contender::Contender;
use super::contest::{Scale, measure};
use crate::Outcome;
use crate::document::{Document, Section};
use crate::machine::{self, Given};
use crate::markdown::{Table, Target};
use crate::rounds::Rounds;
use crate::scale::spoken;

/// What the layer may add to a request, in nanoseconds.
const OVERHEAD: Target = Target::AtMost(1000.0);

/// Everything that was measured.
#[derive(Debug)]
pub struct Report {
    scale: Scale,
    given: Given,
    tables: Vec<Figures>,
}

/// With so many clients.
#[derive(Debug)]
struct Figures {
    peers: u32,
    of: Vec<(Contender, Rounds)>,
}

impl Report {
    /// Measures for seconds, or for half a minute.
    ///
    /// # Errors
    /// A request was refused, or there is no runtime.
    pub fn measure(is_quick: bool, given: Given) -> Outcome<Self> {
        let scale = if is_quick { Scale::QUICK } else { Scale::FULL };
        let mut tables = Vec::new();
        for peers in scale.peers {
            tables.push(Figures { peers, of: measure(scale, peers)? });
        }
        Ok(Self { scale, given, tables })
    }

    fn sections(&self) -> Vec<Section> {
        let titles = ["One client", "Many clients"];
        let tables = self.tables.iter().zip(titles);
        tables.map(|(figures, title)| figures.section(title)).collect()
    }
}

impl Figures {
    fn rounds(&self, wanted: Contender) -> Option<&Rounds> {
        self.of.iter().find(|(contender, _)| *contender == wanted).map(|(_, rounds)| rounds)
    }

    /// What a layer adds, round by round.
    fn added(&self, contender: Contender) -> Option<Rounds> {
        Some(self.rounds(contender)?.minus(self.rounds(Contender::Bare)?))
    }

    fn section(&self, title: &'static str) -> Section {
        let added = self.added(Contender::Tollgate).unwrap_or_default().median();
        let note = format!(
            "Clients are {}, told apart by the connection's address; nobody is refused. Wanted of one limit with \
             headers: {OVERHEAD} ns added: {}.",
            spoken(self.peers),
            OVERHEAD.verdict(added),
        );
        Section { title, note, tables: vec![self.table()] }
    }

    fn table(&self) -> Table {
        let mut table =
            Table::new(["before the route", "ns a request", "added, ns", "× the peer's added"]);
        for (contender, rounds) in &self.of {
            let added = self.added(*contender).filter(|_| *contender != Contender::Bare);
            let ratio = contender
                .peer()
                .and_then(|peer| Some(self.added(*contender)?.relative_to(&self.added(peer)?)));
            let cell = |rounds: Option<Rounds>, digits: usize| {
                rounds.map_or_else(String::new, |rounds| format!("{rounds:.digits$}"))
            };
            table.push([
                contender.name().to_owned(),
                format!("{rounds}"),
                cell(added, 0),
                cell(ratio, 2),
            ]);
        }
        table
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let document = Document {
            title: "The layer",
            given: &self.given,
            peers: ["tower_governor", "governor", "axum"].map(machine::peer).to_vec(),
            figures: format!(
                "a `Router` of axum that answers a constant, called in process on one thread, so that what a layer \
                 adds is seen; median (least–most) of {} rounds of {} requests, a thousand at a time by turns, \
                 differences and ratios taken round by round",
                self.scale.rounds,
                spoken(self.scale.requests),
            ),
            sections: self.sections(),
        };
        write!(f, "{document}")
    }
}
