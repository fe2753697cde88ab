//! The report on the Redis store.

use std::fmt;

use super::deployment::{Deployment, Programs};
use super::figures::Figures;
use super::leases::Leases;
use super::limits::Limits;
use super::memory::Memory;
use super::method_comparison;
use super::runner::{Keys, Runner};
use super::scale::Scale;
use super::single_caller::SingleCaller;
use super::{algorithms, notes, redis_benchmark, refusals};
use crate::Outcome;
use crate::document::{Document, Section, timed_rounds};
use crate::machine::{self, RunInfo};

/// All results.
#[derive(Debug, Clone)]
pub struct Report {
    run_info: RunInfo,
    scale: Scale,
    peers: Vec<String>,
    many: Vec<method_comparison::Row>,
    hot: Vec<method_comparison::Row>,
    benchmark: Vec<redis_benchmark::Row>,
    single_caller: SingleCaller,
    refusals: Vec<refusals::Row>,
    leases: Leases,
    algorithms: Vec<algorithms::Row>,
    memory: Memory,
}

impl Report {
    /// Runs all measurements.
    ///
    /// # Errors
    /// A server does not start, or a decision is wrong.
    pub fn measure(scale: Scale, programs: Programs, run_info: RunInfo) -> Outcome<Self> {
        let deployment = Deployment::start(programs)?;
        let runner = Runner { deployment: &deployment, scale: &scale };
        let peers = peers(&deployment)?;
        eprintln!("correctness checks");
        for method in deployment.methods() {
            runner.check_exactness(method, Limits::TokenBucket)?;
            runner.fill(method, Limits::TokenBucket)?;
        }
        eprintln!("many keys");
        let many = method_comparison::measure(runner, Keys::Many)?;
        eprintln!("one hot key");
        let hot = method_comparison::measure(runner, Keys::Hot)?;
        eprintln!("redis-benchmark");
        let benchmark = redis_benchmark::measure(runner)?;
        eprintln!("single caller");
        let single_caller = SingleCaller::measure(runner)?;
        eprintln!("refusals");
        let refusals = refusals::measure(runner)?;
        eprintln!("leases");
        let leases = Leases::measure(runner)?;
        eprintln!("algorithms");
        let algorithms = algorithms::measure(runner)?;
        eprintln!("memory");
        let memory = Memory::measure(runner)?;
        Ok(Self {
            run_info,
            scale,
            peers,
            many,
            hot,
            benchmark,
            single_caller,
            refusals,
            leases,
            algorithms,
            memory,
        })
    }

    /// Returns all figures, to check that they are valid.
    #[must_use]
    pub fn figures(&self) -> Vec<f64> {
        let method_comparison = self.many.iter().chain(&self.hot).map(|row| &row.figures);
        let refusals = self.refusals.iter().map(|row| &row.figures);
        let algorithms = self.algorithms.iter().map(|row| &row.figures);
        let single_caller = [&self.single_caller.tollgate, &self.single_caller.baseline];
        let loads = method_comparison
            .chain(refusals)
            .chain(self.leases.figures())
            .chain(algorithms)
            .chain(single_caller)
            .flat_map(Figures::all);
        let benchmark = self.benchmark.iter().flat_map(|row| [&row.per_second, &row.redis_micros]);
        let counters = self.memory.counters.iter();
        let counters = counters.flat_map(|(_, size)| [size.growth, size.usage]);
        let logs = self.memory.logs.iter().flat_map(|(_, both)| both).map(|size| size.usage);
        let rounds = loads.chain(benchmark).chain([&self.single_caller.ping]);
        rounds
            .flat_map(|rounds| [rounds.min(), rounds.median(), rounds.max()])
            .chain(counters)
            .chain(logs)
            .collect()
    }

    fn document(&self) -> Document<'_> {
        let Scale { rounds, window, warm_up, .. } = self.scale;
        Document {
            title: "Redis store",
            run_info: &self.run_info,
            peers: self.peers.clone(),
            figures: timed_rounds(rounds, window, warm_up),
            sections: self.sections(),
        }
    }

    fn sections(&self) -> Vec<Section> {
        let section = |title, note: String, tables| Section { title, note, tables };
        let method_comparison = |rows| {
            vec![
                method_comparison::figures(rows),
                method_comparison::ratios(rows),
                method_comparison::targets(rows),
            ]
        };
        vec![
            section(
                "Many callers, many keys",
                notes::many(&self.scale),
                method_comparison(&self.many),
            ),
            section("Many callers, one key", notes::hot(), method_comparison(&self.hot)),
            section(
                "Throughput of Redis",
                notes::redis_benchmark(&self.scale),
                vec![redis_benchmark::table(&self.benchmark)],
            ),
            section("Single caller", notes::single_caller(), vec![self.single_caller.table()]),
            section(
                "Refusals",
                notes::refusals(&self.scale),
                vec![refusals::table(&self.refusals)],
            ),
            section(
                "Leases",
                notes::leases(&self.scale),
                vec![self.leases.table(), self.leases.targets()],
            ),
            section(
                "Algorithms",
                notes::algorithms(&self.scale),
                vec![algorithms::table(&self.algorithms)],
            ),
            section(
                "Memory in Redis",
                notes::memory(&self.scale),
                vec![self.memory.counters(), self.memory.logs()],
            ),
        ]
    }
}

fn peers(deployment: &Deployment) -> Outcome<Vec<String>> {
    let server = format!("redis-server {}", deployment.admin()?.version()?);
    let client = format!("{} (client)", machine::peer("redis"));
    let cell = deployment.cell().map(|version| format!("redis-cell {version}"));
    Ok([server, client].into_iter().chain(cell).collect())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.document().fmt(f)
    }
}
