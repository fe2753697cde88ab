//! The report on the dashboard.

use std::fmt;

use super::{Figures, Programs, Scale, measure};
use crate::Outcome;
use crate::document::{Document, Section};
use crate::machine::RunInfo;
use crate::markdown::{Table, Target};
use crate::rounds::Rounds;
use crate::scale::short_count;

/// Target for the CPU time added by one page, in percent of a core.
const COST: Target = Target::AtMost(5.0);

/// All results.
#[derive(Debug)]
pub struct Report {
    scale: Scale,
    run_info: RunInfo,
    figures: Figures,
}

impl Report {
    /// Runs all measurements; takes minutes, or seconds if `is_quick`.
    ///
    /// # Errors
    /// See [`measure`].
    pub fn measure(programs: &Programs, is_quick: bool, run_info: RunInfo) -> Outcome<Self> {
        let scale = if is_quick { Scale::QUICK } else { Scale::FULL };
        Ok(Self { scale, run_info, figures: measure(programs, scale)? })
    }

    fn section(&self) -> Section {
        let Figures { none, one, ten, bytes, rate } = &self.figures;
        let added = one.minus(none);
        let note = format!(
            "Target for one page: {COST} % of a core added: {}. The node sends {:.0} bytes per second \
             to a page, and completed {:.0} checks per second meanwhile.",
            COST.verdict(added.median()),
            bytes.median(),
            rate.median(),
        );
        let mut table = Table::new(["open pages", "% of a core", "added"]);
        let cell = |rounds: &Rounds| format!("{rounds:.1}");
        table.push(["none".to_owned(), cell(none), String::new()]);
        table.push(["one".to_owned(), cell(one), cell(&added)]);
        table.push(["ten".to_owned(), cell(ten), cell(&ten.minus(none))]);
        Section { title: "Cost of open dashboard pages", note, tables: vec![table] }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let document = Document {
            title: "Dashboard",
            run_info: &self.run_info,
            peers: Vec::new(),
            figures: format!(
                "CPU time of one node on Redis with {} keys in use and {} checks per second, a tenth \
                 of them refused; median (min–max) of {} interleaved rounds of {} s each",
                short_count(self.scale.keys),
                short_count(self.scale.rate),
                self.scale.rounds,
                self.scale.window.as_secs(),
            ),
            sections: vec![self.section()],
        };
        write!(f, "{document}")
    }
}
