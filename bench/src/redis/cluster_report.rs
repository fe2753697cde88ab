//! All figures of decisions by a cluster.

use std::fmt;

use super::contest::Contest;
use super::figures::Figures;
use super::scale::Scale;
use super::stage::{Programs, Stage};
use super::{across, notes, spread};
use crate::Outcome;
use crate::document::{Document, Section, by_turns};
use crate::machine::Given;

/// How many primaries share the slots, where it is more than one.
pub(super) const PRIMARIES: u16 = 3;

/// Everything that was measured.
#[derive(Debug, Clone)]
pub struct ClusterReport {
    given: Given,
    scale: Scale,
    server: String,
    spread: Vec<spread::Row>,
    across: Vec<across::Row>,
}

impl ClusterReport {
    /// Measures everything.
    ///
    /// # Errors
    /// A measurement that would not be one: servers that become no cluster, an answer that is not the
    /// right one.
    pub fn measure(scale: Scale, programs: &Programs, given: Given) -> Outcome<Self> {
        let one = Stage::start(programs.clone())?;
        let alone = Stage::cluster(programs.clone(), 1)?;
        let all = Stage::cluster(programs.clone(), PRIMARIES)?;
        let server = format!("redis-server {}", one.inside()?.version()?);
        eprintln!("keys over slots");
        let stages = [("one server", &one), ("1 primary", &alone), ("3 primaries", &all)];
        let spread = spread::measure(&stages, &scale)?;
        eprintln!("plans across slots");
        let across = across::measure(Contest { stage: &all, scale: &scale })?;
        Ok(Self { given, scale, server, spread, across })
    }

    /// Every figure in it.
    #[must_use]
    pub fn figures(&self) -> Vec<f64> {
        let spread = self.spread.iter().map(|row| &row.figures);
        let across = self.across.iter().flat_map(|row| [&row.within, &row.across]);
        let rounds = spread.chain(across).flat_map(Figures::all);
        rounds.flat_map(|rounds| [rounds.least(), rounds.median(), rounds.most()]).collect()
    }

    fn document(&self) -> Document<'_> {
        let Scale { rounds, window, warm_up, .. } = self.scale;
        let section = |title, note, tables| Section { title, note, tables };
        Document {
            title: "Redis store on a cluster",
            given: &self.given,
            peers: vec![self.server.clone()],
            figures: by_turns(rounds, window, warm_up),
            sections: vec![
                section(
                    "Keys over slots",
                    notes::spread(&self.scale),
                    vec![spread::figures(&self.spread), spread::ratios(&self.spread)],
                ),
                section(
                    "A plan across slots",
                    notes::across(&self.scale),
                    vec![across::table(&self.across)],
                ),
            ],
        }
    }
}

impl fmt::Display for ClusterReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.document().fmt(f)
    }
}
