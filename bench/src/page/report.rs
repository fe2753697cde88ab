//! The part of the benchmarks that is about the dashboard.

use std::fmt;

use super::{Figures, Programs, Scale, measure};
use crate::Outcome;
use crate::document::{Document, Section};
use crate::machine::Given;
use crate::markdown::{Table, Target};
use crate::rounds::Rounds;
use crate::scale::spoken;

/// What a page may cost a node, in hundredths of a core.
const COST: Target = Target::AtMost(5.0);

/// Everything that was measured.
#[derive(Debug)]
pub struct Report {
    scale: Scale,
    given: Given,
    figures: Figures,
}

impl Report {
    /// Measures for minutes, or for seconds.
    ///
    /// # Errors
    /// As [`measure`].
    pub fn measure(programs: &Programs, is_quick: bool, given: Given) -> Outcome<Self> {
        let scale = if is_quick { Scale::QUICK } else { Scale::FULL };
        Ok(Self { scale, given, figures: measure(programs, scale)? })
    }

    fn section(&self) -> Section {
        let Figures { nobody, one, ten, bytes, rate } = &self.figures;
        let added = one.minus(nobody);
        let note = format!(
            "Wanted of one page: {COST} % of a core added: {}. It is sent {:.0} bytes a second; {:.0} checks a second were \
             answered meanwhile.",
            COST.verdict(added.median()),
            bytes.median(),
            rate.median(),
        );
        let mut table = Table::new(["who watches", "% of a core", "added"]);
        let cell = |rounds: &Rounds| format!("{rounds:.1}");
        table.push(["nobody".to_owned(), cell(nobody), String::new()]);
        table.push(["one page".to_owned(), cell(one), cell(&added)]);
        table.push(["ten pages".to_owned(), cell(ten), cell(&ten.minus(nobody))]);
        Section { title: "What watching costs a node", note, tables: vec![table] }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let document = Document {
            title: "The dashboard",
            given: &self.given,
            peers: Vec::new(),
            figures: format!(
                "processor time of one node on Redis with {} keys in use and {} checks a second asked, a tenth of them refused; \
                 median (least–most) of {} rounds of {} s each, by turns",
                spoken(self.scale.keys),
                spoken(self.scale.rate),
                self.scale.rounds,
                self.scale.window.as_secs(),
            ),
            sections: vec![self.section()],
        };
        write!(f, "{document}")
    }
}
