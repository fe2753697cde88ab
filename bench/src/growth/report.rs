//! The report on growth.

use std::fmt;

use super::draw;
use super::panel::Panel;
use super::panels::{Scale, measure};
use crate::Outcome;
use crate::document::{Document, Section};
use crate::machine::{self, RunInfo};
use crate::markdown::Table;
use crate::scale::short_count;

/// All results.
#[derive(Debug, Clone)]
pub struct Report {
    run_info: RunInfo,
    rounds: u32,
    panels: Vec<Panel>,
}

impl Report {
    /// Runs all measurements; takes three minutes, or seconds if `is_quick`.
    ///
    /// # Errors
    /// A decision was refused, or a key dropped.
    pub fn measure(is_quick: bool, run_info: RunInfo) -> Outcome<Self> {
        let scale = if is_quick { Scale::QUICK } else { Scale::FULL };
        Ok(Self { run_info, rounds: scale.rounds, panels: measure(scale)? })
    }

    /// Returns the curves as SVG.
    #[must_use]
    pub fn image(&self) -> String {
        draw(&self.panels)
    }

    /// Returns the panels.
    #[must_use]
    pub fn panels(&self) -> &[Panel] {
        &self.panels
    }
}

fn section(panel: &Panel) -> Section {
    let names = panel.curves.iter().map(|curve| curve.name);
    let mut table = Table::new(
        std::iter::once(format!("ns per decision, {}", panel.axis)).chain(names.map(Into::into)),
    );
    let sizes = panel.curves.first().map(|curve| curve.points.as_slice()).unwrap_or_default();
    for (nth, (size, _)) in sizes.iter().enumerate() {
        let points = panel.curves.iter().filter_map(|curve| curve.points.get(nth));
        let cells = points.map(|(_, nanos)| nanos.to_string());
        table.push(std::iter::once(short_count(*size)).chain(cells));
    }
    Section { title: panel.title, note: panel.note.clone(), tables: vec![table] }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let document = Document {
            title: "Growth",
            run_info: &self.run_info,
            peers: vec![machine::peer("governor"), machine::peer("throttlecrab")],
            figures: format!(
                "nanoseconds per decision, in process; median (min–max) of {} rounds, in which every candidate runs \
                 once; the time to write the key is included\n\n\
                 ![Nanoseconds per decision by number of keys, rules, limits and threads](growth.svg)",
                self.rounds,
            ),
            sections: self.panels.iter().map(section).collect(),
        };
        write!(f, "{document}")
    }
}
