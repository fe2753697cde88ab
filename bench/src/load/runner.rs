//! Runs every server once per round, so that disturbances of the machine affect all of them.

use std::path::PathBuf;
use std::process::Command;

use super::candidate::Candidate;
use super::figures::Figures;
use super::sample::Sample;
use super::scale::Scale;
use super::task::Task;
use crate::Outcome;
use crate::load_mode::LoadMode;
use crate::server::{Cores, Role};

/// Runs the load generator.
#[derive(Debug, Clone)]
pub struct Runner {
    /// This package's `load`.
    pub program: PathBuf,
    /// CPU placement.
    pub cores: Cores,
    /// Number of connections.
    pub connections: u32,
    /// Number of rounds.
    pub rounds: u32,
    /// The timed run of each round.
    pub timed: LoadMode,
}

impl Runner {
    /// Creates a runner with the load generator in `program`.
    #[must_use]
    pub fn new(program: PathBuf, cores: Cores, scale: &Scale) -> Self {
        let Scale { connections, rounds, .. } = *scale;
        Self { program, cores, connections, rounds, timed: scale.timed_mode() }
    }

    /// Sends one request per key, with `in_flight` requests in flight on each connection.
    ///
    /// # Errors
    /// A response is not the expected one.
    pub fn fill(&self, candidate: &Candidate, in_flight: u32) -> Outcome<Sample> {
        self.load(candidate, in_flight, LoadMode::Fill)
    }

    /// Runs all rounds.
    ///
    /// # Errors
    /// A response is not the expected one.
    pub fn rounds<const N: usize>(
        &self,
        candidates: [&Candidate; N],
        in_flight: u32,
    ) -> Outcome<[Figures; N]> {
        let mut figures = candidates.map(|_| Figures::default());
        for _ in 0..self.rounds {
            for (candidate, round_figures) in candidates.iter().zip(&mut figures) {
                round_figures.push(&self.load(candidate, in_flight, self.timed)?);
            }
        }
        Ok(figures)
    }

    fn load(&self, candidate: &Candidate, in_flight: u32, mode: LoadMode) -> Outcome<Sample> {
        let output = self.load_command(candidate, in_flight, mode).output()?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            let protocol = candidate.requests.protocol.join(" ");
            return Err(format!("{protocol}: {}", message.trim()).into());
        }
        String::from_utf8(output.stdout)?.parse()
    }

    /// Returns the command of a run of the load generator.
    pub(super) fn load_command(
        &self,
        candidate: &Candidate,
        in_flight: u32,
        mode: LoadMode,
    ) -> Command {
        let Candidate { server, requests, .. } = candidate;
        let task = Task {
            address: server.address(),
            server: server.id(),
            connections: self.connections,
            in_flight,
            requests: requests.clone(),
            mode,
        };
        let mut command = self.cores.command(Role::Load, &self.program);
        command.args(task.arguments());
        command
    }
}
