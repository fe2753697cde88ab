//! The report on the gRPC server.

use std::fmt;

use super::candidate::Programs;
use crate::document::{Document, Section, timed_rounds};
use crate::load::candidate::Candidate;
use crate::load::comparison::{self, Comparison, Contender};
use crate::load::runner::Runner;
use crate::load::scale::Scale;
use crate::machine::RunInfo;
use crate::markdown::Target;
use crate::scale::short_count;
use crate::server::printed_version;
use crate::{Outcome, machine};

/// The measured numbers of concurrent streams per connection.
const STREAMS: [(u32, &str); 2] = [(1, "1 stream"), (10, "10 streams")];

/// Requests in flight on each connection while the keys are used for the first time.
const FILL_STREAMS: u32 = 10;

const CONTENDERS: [Contender; 4] = [
    Contender { name: "tollgate", short: "tollgate", target: None },
    Contender {
        name: "throttlecrab-server",
        short: "throttlecrab-server",
        target: Some(Target::Above(1.0)),
    },
    Contender { name: "limitador on tonic", short: "limitador", target: Some(Target::Above(1.0)) },
    Contender {
        name: "tonic, constant response",
        short: "tonic constant",
        target: Some(Target::AtLeast(0.95)),
    },
];

/// All results.
#[derive(Debug, Clone)]
pub struct Report {
    run_info: RunInfo,
    scale: Scale,
    peers: Vec<String>,
    /// Length of tollgate's response and of the constant one, in bytes.
    response_bytes: f64,
    /// One comparison per number of streams.
    comparisons: Vec<Comparison>,
}

impl Report {
    /// Starts and measures all servers.
    ///
    /// # Errors
    /// A server does not start, or does not allow every request.
    pub fn measure(scale: Scale, programs: &Programs, run_info: RunInfo) -> Outcome<Self> {
        let peers = vec![
            printed_version(&programs.throttlecrab)?,
            printed_version(&programs.limitador)?,
            machine::peer("tonic"),
        ];
        let tollgate = programs.tollgate(scale.keys)?;
        let constant = programs.constant(&tollgate, scale.keys)?;
        let throttlecrab = programs.throttlecrab(scale.keys)?;
        let limitador = programs.limitador(scale.keys)?;
        let runner = Runner::new(programs.load.clone(), programs.cores, &scale);
        let servers = [&tollgate, &throttlecrab, &limitador, &constant];
        Self::compare(scale, &runner, servers, peers, run_info)
    }

    /// Measures tollgate, both peers and the baseline with every number of streams.
    ///
    /// # Errors
    /// A server does not allow every request.
    pub fn compare(
        scale: Scale,
        runner: &Runner,
        servers: [&Candidate; 4],
        peers: Vec<String>,
        run_info: RunInfo,
    ) -> Outcome<Self> {
        let [tollgate, throttlecrab, limitador, _] = servers;
        let response_bytes = runner.fill(tollgate, FILL_STREAMS)?.payload_bytes;
        for peer in [throttlecrab, limitador] {
            runner.fill(peer, FILL_STREAMS)?;
        }
        let loads = STREAMS.map(|(streams, label)| (streams, label.to_owned(), CONTENDERS));
        let comparisons = comparison::measure(runner, servers, loads)?;
        Ok(Self { run_info, scale, peers, response_bytes, comparisons })
    }

    /// Returns all figures, to check that they are valid.
    #[must_use]
    pub fn figures(&self) -> Vec<f64> {
        comparison::all_figures(&self.comparisons)
    }

    fn document(&self) -> Document<'_> {
        let Scale { rounds, window, warm_up, .. } = self.scale;
        Document {
            title: "gRPC, memory store",
            run_info: &self.run_info,
            peers: self.peers.clone(),
            figures: timed_rounds(rounds, window, warm_up),
            sections: vec![self.checks()],
        }
    }

    fn checks(&self) -> Section {
        let Scale { connections, keys, .. } = self.scale;
        let note = format!(
            "{connections} connections; each sends its calls in one write, and the next ones when it has all \
             responses. {} random keys, all of which were used before. Every request is allowed; any other response \
             aborts the run. The server runs on one core and the load generator on the other, of which it used at \
             most {:.0} %. The load generator writes HTTP/2 frames itself, with indexed header fields.\n\n\
             - *tollgate*: `tollgate serve --grpc`, `ShouldRateLimit` with one descriptor and a policy of one rule.\n\
             - *throttlecrab-server*: gRPC only, `Throttle` with the same quota in the request; its default store, \
             with capacity for all keys and without cleanup during the measurement.\n\
             - *limitador on tonic*: the calls of tollgate, and one limit in the memory store of the library (a fixed \
             window); the response contains the overall code only. limitador-server is in no package registry; this is \
             its library behind tonic's server, without metrics and traces.\n\
             - *tonic, constant response*: tonic's server, which decodes the request and returns a response of \
             tollgate ({} bytes; that of throttlecrab-server is shorter). It has an empty tracing subscriber: without \
             one, a seventh of its instructions would format spans.",
            short_count(keys),
            comparison::max_load_percent(&self.comparisons),
            self.response_bytes,
        );
        let tables = comparison::tables(&self.comparisons);
        Section { title: "Checks over gRPC", note, tables }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.document().fmt(f)
    }
}
