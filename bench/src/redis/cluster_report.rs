//! The report on the Redis store on a cluster.

use std::fmt;

use super::deployment::{Deployment, Programs};
use super::figures::Figures;
use super::runner::Runner;
use super::scale::Scale;
use super::{cluster_overhead, cross_slot, notes};
use crate::Outcome;
use crate::document::{Document, Section, timed_rounds};
use crate::machine::RunInfo;

/// Number of primaries of the larger cluster.
pub(super) const PRIMARIES: u16 = 3;

/// All results.
#[derive(Debug, Clone)]
pub struct ClusterReport {
    run_info: RunInfo,
    scale: Scale,
    server: String,
    cluster_overhead: Vec<cluster_overhead::Row>,
    cross_slot: Vec<cross_slot::Row>,
}

impl ClusterReport {
    /// Runs all measurements.
    ///
    /// # Errors
    /// The servers do not form a cluster, or a decision is wrong.
    pub fn measure(scale: Scale, programs: &Programs, run_info: RunInfo) -> Outcome<Self> {
        let single_server = Deployment::start(programs.clone())?;
        let one_primary = Deployment::cluster(programs.clone(), 1)?;
        let three_primaries = Deployment::cluster(programs.clone(), PRIMARIES)?;
        let server = format!("redis-server {}", single_server.admin()?.version()?);
        eprintln!("cluster overhead");
        let deployments = [
            ("one server", &single_server),
            ("1 primary", &one_primary),
            ("3 primaries", &three_primaries),
        ];
        let cluster_overhead = cluster_overhead::measure(&deployments, &scale)?;
        eprintln!("plans in two slots");
        let cross_slot =
            cross_slot::measure(Runner { deployment: &three_primaries, scale: &scale })?;
        Ok(Self { run_info, scale, server, cluster_overhead, cross_slot })
    }

    /// Returns all figures, to check that they are valid.
    #[must_use]
    pub fn figures(&self) -> Vec<f64> {
        let cluster_overhead = self.cluster_overhead.iter().map(|row| &row.figures);
        let cross_slot = self.cross_slot.iter().flat_map(|row| [&row.one_slot, &row.two_slots]);
        let rounds = cluster_overhead.chain(cross_slot).flat_map(Figures::all);
        rounds.flat_map(|rounds| [rounds.min(), rounds.median(), rounds.max()]).collect()
    }

    fn document(&self) -> Document<'_> {
        let Scale { rounds, window, warm_up, .. } = self.scale;
        let section = |title, note, tables| Section { title, note, tables };
        Document {
            title: "Redis store on a cluster",
            run_info: &self.run_info,
            peers: vec![self.server.clone()],
            figures: timed_rounds(rounds, window, warm_up),
            sections: vec![
                section(
                    "Cost of a cluster",
                    notes::cluster_overhead(&self.scale),
                    vec![
                        cluster_overhead::figures(&self.cluster_overhead),
                        cluster_overhead::ratios(&self.cluster_overhead),
                    ],
                ),
                section(
                    "Plans in two slots",
                    notes::cross_slot(&self.scale),
                    vec![cross_slot::table(&self.cross_slot)],
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
