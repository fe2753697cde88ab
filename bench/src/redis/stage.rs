//! Where Redis and its load run.

use std::cell::Cell;
use std::path::PathBuf;
use std::process::Command;

use super::inside::Inside;
use super::sample::Sample;
use super::task::{Ask, Task};
use super::way::Way;
use crate::Outcome;
use crate::cpu::Meter;
use crate::server::{Address, Cores, Role, Server};
use crate::work::Work;

/// Above the keys that are asked about in every round.
const FIRST_FRESH: u32 = 10_000_000;

/// Where the programs are, and where they run.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The server.
    pub redis: PathBuf,
    /// The module redis-cell and its version; without it that way is not measured.
    pub cell: Option<(PathBuf, String)>,
    /// This package's `redis_load`.
    pub load: PathBuf,
    /// The cores.
    pub cores: Cores,
}

/// A server that runs, for everyone in turn.
#[derive(Debug)]
pub struct Stage {
    programs: Programs,
    server: Server,
    next_fresh: Cell<u32>,
}

impl Stage {
    /// Starts the server, without persistence.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(programs: Programs) -> Outcome<Self> {
        let address = Address::free()?;
        let mut command = programs.cores.command(Role::Server, &programs.redis);
        command.args(["--port", &address.port().to_string(), "--bind", "127.0.0.1"]);
        command.args(["--save", "", "--appendonly", "no"]);
        if let Some((module, _)) = &programs.cell {
            command.arg("--loadmodule").arg(module);
        }
        let server = Server::start(command, Address::Told(address))?;
        Ok(Self { programs, server, next_fresh: Cell::new(FIRST_FRESH) })
    }

    /// The version of the module redis-cell, if it is loaded.
    #[must_use]
    pub fn cell(&self) -> Option<&str> {
        self.programs.cell.as_ref().map(|(_, version)| version.as_str())
    }

    /// The ways of asking that can be compared.
    #[must_use]
    pub fn ways(&self) -> Vec<Way> {
        let cell = self.cell().map(|_| Way::Cell);
        [Way::Tollgate, Way::Multiplexed, Way::Pool].into_iter().chain(cell).collect()
    }

    /// The server's address for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.server.address())
    }

    /// A connection to look at the server, or to put something into it.
    ///
    /// # Errors
    /// The server is gone.
    pub fn inside(&self) -> Outcome<Inside> {
        Inside::connect(&self.url())
    }

    /// Numbers of so many keys that nobody has asked about, by the first.
    #[must_use]
    pub fn fresh(&self, keys: u32) -> u32 {
        self.next_fresh.replace(self.next_fresh.get() + keys)
    }

    /// Puts a load on the server.
    ///
    /// # Errors
    /// An answer that is not the right one, and which.
    pub fn load(&self, way: Way, callers: u32, ask: Ask, work: Work) -> Outcome<Sample> {
        let task = Task { url: self.url(), way, callers, ask, work };
        let mut command = self.programs.cores.command(Role::Load, &self.programs.load);
        command.args(task.arguments());
        said(command).map_err(|complaint| format!("{}: {complaint}", way.name()))?.parse()
    }

    /// Lets `redis-benchmark` do something, and gives what it said, and the server's processor time in
    /// seconds.
    ///
    /// # Errors
    /// It fails.
    pub fn benchmark(&self, arguments: &[&str]) -> Outcome<(String, f64)> {
        let mut command = self.programs.cores.command(Role::Load, &"redis-benchmark".into());
        let address = self.server.address();
        command.args(["-h", &address.ip().to_string(), "-p", &address.port().to_string()]);
        command.args(arguments);
        let meter = Meter::of(&self.server.id().to_string())?;
        let before = meter.seconds()?;
        let said = said(command)?;
        Ok((said, meter.seconds()? - before))
    }
}

fn said(mut command: Command) -> Outcome<String> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
