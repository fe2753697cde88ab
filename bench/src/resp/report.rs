//! The report on the RESP server.

use std::fmt;

use super::candidate::Programs;
use super::command::Command;
use crate::document::{Document, Section, timed_rounds};
use crate::load::comparison::{self, Comparison, Contender};
use crate::load::runner::Runner;
use crate::load::scale::Scale;
use crate::machine::RunInfo;
use crate::markdown::Target;
use crate::scale::short_count;
use crate::server::printed_version;
use crate::{Outcome, machine, redis_server};

/// The measured lengths of pipelines.
const PIPELINES: [u32; 3] = [1, 16, 64];

/// All results.
#[derive(Debug, Clone)]
pub struct Report {
    run_info: RunInfo,
    scale: Scale,
    peers: Vec<String>,
    /// One comparison per length of pipelines.
    comparisons: Vec<Comparison>,
}

impl Report {
    /// Measures all servers with every length of pipelines.
    ///
    /// # Errors
    /// A server does not start, or does not allow every request.
    pub fn measure(scale: Scale, programs: &Programs, run_info: RunInfo) -> Outcome<Self> {
        let keys = scale.keys;
        let runner = Runner::new(programs.load.clone(), programs.cores, &scale);
        let peers = vec![
            printed_version(&programs.throttlecrab)?,
            redis_server::version(&programs.redis)?,
            machine::peer("tokio"),
        ];
        let tollgate = programs.tollgate(Command::ClThrottle, keys)?;
        let same_command = programs.tollgate(Command::Throttle, keys)?;
        let throttlecrab = programs.throttlecrab(keys)?;
        let redis = programs.redis(keys)?;
        let filled = [&tollgate, &same_command, &throttlecrab, &redis];
        for candidate in filled {
            runner.fill(candidate, 1)?;
        }
        let constant = programs.constant(&tollgate, Command::ClThrottle, keys)?;
        let candidates = [&tollgate, &same_command, &throttlecrab, &redis, &constant];
        let loads = PIPELINES.map(|length| (length, format!("P={length}"), contenders(length)));
        let comparisons = comparison::measure(&runner, candidates, loads)?;
        Ok(Self { run_info, scale, peers, comparisons })
    }

    /// Returns all figures, to check that they are valid.
    #[must_use]
    pub fn figures(&self) -> Vec<f64> {
        comparison::all_figures(&self.comparisons)
    }

    fn document(&self) -> Document<'_> {
        let Scale { rounds, window, warm_up, .. } = self.scale;
        Document {
            title: "RESP, memory store",
            run_info: &self.run_info,
            peers: self.peers.clone(),
            figures: timed_rounds(rounds, window, warm_up),
            sections: vec![self.checks()],
        }
    }

    fn checks(&self) -> Section {
        let Scale { connections, keys, .. } = self.scale;
        let note = format!(
            "{connections} connections; each sends a pipeline of P commands in one write, and the next one when \
             it has all replies. {} random keys, all of which were used before. Every request is allowed; any other \
             reply aborts the run. The server runs on one core and the load generator on the other, of which it \
             used at most {:.0} %. Latencies are from the write of a pipeline to the read of a reply. \
             `redis-benchmark` is not used: it needs more CPU time per command than the baseline server.\n\n\
             - *tollgate*: `tollgate serve --resp`, with the limit in each command.\n\
             - *throttlecrab-server*: RESP only, with the same quota; its default store, with capacity for all keys \
             and without cleanup during the measurement. It writes each reply separately.\n\
             - *Redis*: `INCR` of the key, without persistence.\n\
             - *tokio, constant reply*: finds the end of each command and returns a reply of tollgate, those to a \
             pipeline in one write.",
            short_count(keys),
            comparison::max_load_percent(&self.comparisons),
        );
        let tables = comparison::tables(&self.comparisons);
        Section { title: "Checks over RESP", note, tables }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.document().fmt(f)
    }
}

/// Returns the servers with the targets for a length of pipelines.
fn contenders(pipeline: u32) -> [Contender; 5] {
    let is_single = pipeline == 1;
    let redis = (!is_single).then_some(Target::AtLeast(1.0));
    let constant = is_single.then_some(Target::AtLeast(0.95));
    let contender = |name, short, target| Contender { name, short, target };
    [
        contender("tollgate, `CL.THROTTLE`", "tollgate", None),
        contender("tollgate, `THROTTLE`", "tollgate `THROTTLE`", None),
        contender(
            "throttlecrab-server, `THROTTLE`",
            "throttlecrab-server",
            Some(Target::Above(1.0)),
        ),
        contender("Redis, `INCR`", "Redis `INCR`", redis),
        contender("tokio, constant reply", "tokio constant", constant),
    ]
}
