//! All figures of decisions by Redis.

use std::fmt;

use super::asking;
use super::contest::{Contest, Keys};
use super::figures::Figures;
use super::idle::Idle;
use super::limits::Limits;
use super::memory::Memory;
use super::scale::Scale;
use super::stage::{Programs, Stage};
use super::{algorithms, floor, notes, refused};
use crate::Outcome;
use crate::document::{Document, Section, by_turns};
use crate::machine::{self, Given};

/// Everything that was measured.
#[derive(Debug, Clone)]
pub struct Report {
    given: Given,
    scale: Scale,
    peers: Vec<String>,
    many: Vec<asking::Row>,
    hot: Vec<asking::Row>,
    floors: Vec<floor::Row>,
    idle: Idle,
    refused: Vec<refused::Row>,
    algorithms: Vec<algorithms::Row>,
    memory: Memory,
}

impl Report {
    /// Measures everything.
    ///
    /// # Errors
    /// A measurement that would not be one: a server that does not start, an answer that is not the
    /// right one.
    pub fn measure(scale: Scale, programs: Programs, given: Given) -> Outcome<Self> {
        let stage = Stage::start(programs)?;
        let contest = Contest { stage: &stage, scale: &scale };
        let peers = peers(&stage)?;
        eprintln!("proofs");
        for way in stage.ways() {
            contest.prove(way, Limits::TokenBucket)?;
            contest.fill(way, Limits::TokenBucket)?;
        }
        eprintln!("many keys");
        let many = asking::measure(contest, Keys::Many)?;
        eprintln!("one hot key");
        let hot = asking::measure(contest, Keys::Hot)?;
        eprintln!("redis-benchmark");
        let floors = floor::measure(contest)?;
        eprintln!("one caller");
        let idle = Idle::measure(contest)?;
        eprintln!("refusals");
        let refused = refused::measure(contest)?;
        eprintln!("algorithms");
        let algorithms = algorithms::measure(contest)?;
        eprintln!("memory");
        let memory = Memory::measure(contest)?;
        Ok(Self { given, scale, peers, many, hot, floors, idle, refused, algorithms, memory })
    }

    /// Every figure in it.
    #[must_use]
    pub fn figures(&self) -> Vec<f64> {
        let asking = self.many.iter().chain(&self.hot).map(|row| &row.figures);
        let refused = self.refused.iter().map(|row| &row.figures);
        let algorithms = self.algorithms.iter().map(|row| &row.figures);
        let idle = [&self.idle.tollgate, &self.idle.usual];
        let loads = asking.chain(refused).chain(algorithms).chain(idle).flat_map(Figures::all);
        let floors = self.floors.iter().flat_map(|row| [&row.per_second, &row.redis_micros]);
        let counters = self.memory.counters.iter();
        let counters = counters.flat_map(|(_, weight)| [weight.growth, weight.usage]);
        let logs = self.memory.logs.iter().flat_map(|(_, both)| both).map(|weight| weight.usage);
        let rounds = loads.chain(floors).chain([&self.idle.ping]);
        rounds
            .flat_map(|rounds| [rounds.least(), rounds.median(), rounds.most()])
            .chain(counters)
            .chain(logs)
            .collect()
    }

    fn document(&self) -> Document<'_> {
        let Scale { rounds, window, warm_up, .. } = self.scale;
        Document {
            title: "Redis store",
            given: &self.given,
            peers: self.peers.clone(),
            figures: by_turns(rounds, window, warm_up),
            sections: self.sections(),
        }
    }

    fn sections(&self) -> Vec<Section> {
        let section = |title, note: String, tables| Section { title, note, tables };
        let asking =
            |rows| vec![asking::figures(rows), asking::ratios(rows), asking::targets(rows)];
        vec![
            section("Many callers, many keys", notes::many(&self.scale), asking(&self.many)),
            section("Many callers, one key", notes::hot(), asking(&self.hot)),
            section(
                "What Redis can do",
                notes::floors(&self.scale),
                vec![floor::table(&self.floors)],
            ),
            section("One caller", notes::idle(), vec![self.idle.table()]),
            section("Refusals", notes::refused(&self.scale), vec![refused::table(&self.refused)]),
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

fn peers(stage: &Stage) -> Outcome<Vec<String>> {
    let server = format!("redis-server {}", stage.inside()?.version()?);
    let client = format!("{} (client)", machine::peer("redis"));
    let cell = stage.cell().map(|version| format!("redis-cell {version}"));
    Ok([server, client].into_iter().chain(cell).collect())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.document().fmt(f)
    }
}
