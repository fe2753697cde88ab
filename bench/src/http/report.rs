//! The report on the HTTP server.

use std::fmt;

use super::candidate::Programs;
use super::comparison::Results;
use super::runner::Runner;
use super::scale::Scale;
use super::{comparison, key_counts, policies};
use crate::Outcome;
use crate::document::{Document, Section, timed_rounds};
use crate::load::comparison::{all_figures, max_load_percent, tables};
use crate::load::figures::Figures;
use crate::machine::{self, RunInfo};
use crate::scale::short_count;
use crate::server::printed_version;

/// All results.
#[derive(Debug, Clone)]
pub struct Report {
    run_info: RunInfo,
    scale: Scale,
    peers: Vec<String>,
    results: Results,
    key_counts: Vec<key_counts::Row>,
    policies: [policies::Row; 4],
}

impl Report {
    /// Runs all measurements.
    ///
    /// # Errors
    /// A server does not start, or a response is not the expected one.
    pub fn measure(scale: Scale, programs: &Programs, run_info: RunInfo) -> Outcome<Self> {
        let runner = Runner { programs, scale: &scale };
        let peers = vec![
            printed_version(&programs.throttlecrab)?,
            printed_version(&programs.limitador)?,
            machine::peer("axum"),
        ];
        eprintln!("comparison");
        let results = comparison::measure(runner)?;
        eprintln!("numbers of keys");
        let key_counts = key_counts::measure(runner)?;
        eprintln!("policies");
        let policies = policies::measure(runner)?;
        Ok(Self { run_info, scale, peers, results, key_counts, policies })
    }

    /// Returns all figures, to check that they are valid.
    #[must_use]
    pub fn figures(&self) -> Vec<f64> {
        let key_counts = self.key_counts.iter().flat_map(|row| [&row.tollgate, &row.throttlecrab]);
        let policies = self.policies.iter().map(|row| &row.figures);
        let rounds = key_counts.chain(policies).flat_map(Figures::all);
        let others = rounds.flat_map(|rounds| [rounds.min(), rounds.median(), rounds.max()]);
        all_figures(&self.results.comparison).into_iter().chain(others).collect()
    }

    fn document(&self) -> Document<'_> {
        let Scale { rounds, window, warm_up, .. } = self.scale;
        Document {
            title: "HTTP, memory store",
            run_info: &self.run_info,
            peers: self.peers.clone(),
            figures: timed_rounds(rounds, window, warm_up),
            sections: vec![self.checks(), self.keys(), self.rules()],
        }
    }

    fn checks(&self) -> Section {
        let Scale { connections, keys, .. } = self.scale;
        let note = format!(
            "{connections} keep-alive connections, each with one request in flight; {} random keys, \
             all of which were used before. Token bucket, every request is allowed and no key is \
             dropped; any other response aborts the run. The server runs on one core and the load \
             generator on the other, of which it used at most {:.0} %.\n\n\
             - *tollgate*: `tollgate serve`, `POST /check` with the default limit of a policy file.\n\
             - *throttlecrab-server*: HTTP only, `POST /throttle` with the same quota in the request; \
             its default store, with capacity for all keys and without cleanup during the measurement.\n\
             - *limitador on axum*: `POST /check_and_report`, and one limit in the memory store of the \
             library (a fixed window). limitador-server is in no package registry; this is its library \
             behind axum with the body of its HTTP API, without metrics and traces, and with a response \
             of 16 bytes.\n\
             - *axum, constant response*: JSON of the same {} bytes as tollgate's response; the \
             request body is not read.\n\n\
             System calls are counted in a separate run with `perf stat`, if it is available.",
            short_count(keys),
            max_load_percent(&self.results.comparison),
            self.results.body_bytes,
        );
        let mut tables = tables(&self.results.comparison);
        if !self.results.system_calls.is_empty() {
            tables.push(self.results.system_calls_table());
        }
        Section { title: "Checks over HTTP", note, tables }
    }

    fn keys(&self) -> Section {
        let note = "As above, with other numbers of keys; every key was used once before. tollgate \
                    runs with its default of `--max-keys 1000000`, and with the number of keys where \
                    that is larger. The capacity of throttlecrab-server is always the number of keys."
            .to_owned();
        Section {
            title: "Checks over HTTP, by number of keys",
            note,
            tables: vec![key_counts::table(&self.key_counts)],
        }
    }

    fn rules(&self) -> Section {
        let note = format!(
            "As above, {} keys. With rules, a request contains the facts `client` and `path`; every \
             rule has its own paths, with equal probability. The two limits are token buckets that \
             refill one token per minute and per hour.",
            short_count(self.scale.keys),
        );
        let tables = vec![policies::table(&self.policies)];
        Section { title: "Checks over HTTP, by policy", note, tables }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.document().fmt(f)
    }
}
