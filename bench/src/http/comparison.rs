//! The main comparison: tollgate, throttlecrab-server, limitador and a constant response.

use super::policy::Policy;
use super::runner::Runner;
use crate::Outcome;
use crate::load::comparison::{Comparison, Contender};
use crate::load::system_calls::SystemCalls;
use crate::markdown::{Table, Target};

const CONTENDERS: [Contender; 4] = [
    Contender { name: "tollgate", short: "tollgate", target: None },
    Contender {
        name: "throttlecrab-server",
        short: "throttlecrab-server",
        target: Some(Target::AtLeast(1.3)),
    },
    Contender { name: "limitador on axum", short: "limitador", target: Some(Target::Above(1.0)) },
    Contender {
        name: "axum, constant response",
        short: "axum constant",
        target: Some(Target::AtLeast(0.95)),
    },
];

/// The results of the comparison.
#[derive(Debug, Clone)]
pub struct Results {
    /// The only comparison.
    pub comparison: [Comparison; 1],
    /// Body length of tollgate's response and of the constant one, in bytes.
    pub body_bytes: f64,
    /// System calls of each server; empty if they cannot be counted.
    pub system_calls: Vec<(&'static str, SystemCalls)>,
}

/// Measures all servers.
///
/// # Errors
/// A server does not start, or does not allow every request.
pub fn measure(runner: Runner<'_>) -> Outcome<Results> {
    let keys = runner.scale.keys;
    let tollgate = runner.programs.tollgate(Policy::Default, keys)?;
    let body_bytes = runner.fill(&tollgate)?.payload_bytes;
    let throttlecrab = runner.programs.throttlecrab(keys)?;
    runner.fill(&throttlecrab)?;
    let limitador = runner.programs.limitador(keys)?;
    runner.fill(&limitador)?;
    let constant = runner.programs.constant(body_bytes, keys)?;
    let servers = [&tollgate, &throttlecrab, &limitador, &constant];
    let comparison = [Comparison::new(String::new(), CONTENDERS, runner.rounds(servers)?)];
    let mut system_calls = Vec::new();
    for (contender, server) in CONTENDERS.iter().zip(servers) {
        let counted = runner.system_calls(server)?;
        system_calls.extend(counted.map(|counted| (contender.name, counted)));
    }
    Ok(Results { comparison, body_bytes, system_calls })
}

impl Results {
    /// Returns the system calls as a table.
    #[must_use]
    pub fn system_calls_table(&self) -> Table {
        let mut table = Table::new([
            "",
            "system calls per request",
            "of which `epoll_wait`",
            "requests per wake-up",
        ]);
        for (name, SystemCalls { all, epoll_wait }) in &self.system_calls {
            let [all, waits, requests] =
                [*all, *epoll_wait, 1.0 / epoll_wait].map(|figure| format!("{figure:.2}"));
            table.push([(*name).to_owned(), all, waits, requests]);
        }
        table
    }
}
