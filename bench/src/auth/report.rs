//! The report on forward auth.

use std::fmt;

use super::candidate::Programs;
use crate::Outcome;
use crate::document::{Document, Section, timed_rounds};
use crate::load::figures::Figures;
use crate::load::runner::Runner;
use crate::load::scale::Scale;
use crate::machine::RunInfo;
use crate::markdown::Table;

/// Connections of a full load.
const FULL_LOAD: u32 = 50;
/// Target for the p99 that tollgate adds, in microseconds.
const TARGET_MICROS: f64 = 1000.0;

/// All results.
#[derive(Debug, Clone)]
pub struct Report {
    run_info: RunInfo,
    scale: Scale,
    /// Requests per second of the constant response at full load.
    full_rate: f64,
    /// Connections of half load.
    connections: u32,
    tollgate: Figures,
    constant: Figures,
}

impl Report {
    /// Measures nginx with both auth servers at half load.
    ///
    /// # Errors
    /// A program does not start, or a request is not allowed.
    pub fn measure(scale: Scale, programs: &Programs, run_info: RunInfo) -> Outcome<Self> {
        let tollgate = programs.with_tollgate()?;
        let constant = programs.with_constant()?;
        let candidates = [&tollgate.candidate, &constant.candidate];
        let runner = |connections, rounds| {
            let scale = Scale { connections, rounds, ..scale };
            Runner::new(programs.load.clone(), programs.cores, &scale)
        };
        let rate_with = |connections| {
            let [figures] = runner(connections, 1).rounds([&constant.candidate], 1)?;
            Outcome::Ok(figures.per_second.median())
        };
        let full_rate = rate_with(FULL_LOAD)?;
        let mut connections = 1;
        while connections < FULL_LOAD && rate_with(connections)? < full_rate / 2.0 {
            connections += 1;
        }
        eprintln!("half load: {connections} connections");
        let [tollgate, constant] = runner(connections, scale.rounds).rounds(candidates, 1)?;
        Ok(Self { run_info, scale, full_rate, connections, tollgate, constant })
    }

    fn document(&self) -> Document<'_> {
        let Scale { rounds, window, warm_up, .. } = self.scale;
        Document {
            title: "Forward auth behind nginx, memory store",
            run_info: &self.run_info,
            peers: Vec::new(),
            figures: timed_rounds(rounds, window, warm_up),
            sections: vec![self.latencies()],
        }
    }

    fn latencies(&self) -> Section {
        let mut table =
            Table::new(["auth_request to", "requests/s", "p50 µs", "p99 µs", "p99.9 µs"]);
        for (name, figures) in [("tollgate", &self.tollgate), ("a constant", &self.constant)] {
            table.push([
                name.to_owned(),
                figures.per_second.to_string(),
                figures.p50.to_string(),
                figures.p99.to_string(),
                figures.p999.to_string(),
            ]);
        }
        let added = self.tollgate.p99.median() - self.constant.p99.median();
        let verdict = if added <= TARGET_MICROS { "reached" } else { "missed" };
        let note = format!(
            "nginx with one process, `examples/proxies/nginx.conf` and open connections to the auth server and the app, \
             all on one core; the load generator on the other. {} connections, each with one request at a time: the \
             smallest number that reaches half of the {:.0} requests/s that {FULL_LOAD} connections reach with the \
             constant. **p99 added by tollgate: {added:.0} µs** (target: at most {TARGET_MICROS:.0} µs, {verdict}).",
            self.connections, self.full_rate
        );
        Section { title: "Latency of allowed requests", note, tables: vec![table] }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.document().fmt(f)
    }
}
