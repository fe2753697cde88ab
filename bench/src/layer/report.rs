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
    figures: Vec<(Contender, Rounds)>,
}

impl Report {
    /// Measures for seconds, or for half a minute.
    ///
    /// # Errors
    /// A request was refused, or there is no runtime.
    pub fn measure(is_quick: bool, given: Given) -> Outcome<Self> {
        let scale = if is_quick { Scale::QUICK } else { Scale::FULL };
        Ok(Self { scale, given, figures: measure(scale)? })
    }

    fn of(&self, wanted: Contender) -> Option<&Rounds> {
        self.figures.iter().find(|(contender, _)| *contender == wanted).map(|(_, rounds)| rounds)
    }

    /// What a layer adds, round by round.
    fn added(&self, contender: Contender) -> Option<Rounds> {
        Some(self.of(contender)?.minus(self.of(Contender::Bare)?))
    }

    fn table(&self) -> Table {
        let mut table =
            Table::new(["before the route", "ns a request", "added, ns", "× the peer's added"]);
        for (contender, rounds) in &self.figures {
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

    fn note(&self) -> String {
        let added = self.added(Contender::Tollgate).unwrap_or_default().median();
        format!(
            "A `Router` of axum that answers a constant, called in process on one thread: no sockets, so that \
             what a layer adds is seen. Clients are {} addresses, read from the connection's; nobody is refused. \
             Wanted of one limit with headers: {OVERHEAD} ns added: {}.",
            spoken(self.scale.peers),
            OVERHEAD.verdict(added),
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let document = Document {
            title: "The layer",
            given: &self.given,
            peers: ["tower_governor", "governor", "axum"].map(machine::peer).to_vec(),
            figures: format!(
                "median (least–most) of {} rounds of {} requests, a thousand at a time by turns, differences \
                 and ratios taken round by round",
                self.scale.rounds,
                spoken(self.scale.requests),
            ),
            sections: vec![Section {
                title: "What it adds to a hello-world route",
                note: self.note(),
                tables: vec![self.table()],
            }],
        };
        write!(f, "{document}")
    }
}
