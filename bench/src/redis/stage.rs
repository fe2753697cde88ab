//! Where Redis and its load run.

use std::cell::Cell;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::cluster;
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

impl Programs {
    /// Starts a server without persistence, with more to its command.
    pub(super) fn start(&self, settings: impl FnOnce(&mut Command)) -> Outcome<Server> {
        let address = Address::free()?;
        let mut command = self.cores.command(Role::Server, &self.redis);
        command.args(["--port", &address.port().to_string(), "--bind", "127.0.0.1"]);
        command.args(["--save", "", "--appendonly", "no"]);
        settings(&mut command);
        Server::start(command, Address::Told(address))
    }
}

/// A server or a cluster that runs, for everyone in turn.
#[derive(Debug)]
pub struct Stage {
    programs: Programs,
    server: Server,
    /// The other nodes of its cluster, and the files of all; none if it is not one.
    cluster: Option<(Vec<Server>, TempDir)>,
    next_fresh: Cell<u32>,
}

impl Stage {
    /// Starts the server, without persistence.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(programs: Programs) -> Outcome<Self> {
        let server = programs.start(|command| {
            if let Some((module, _)) = &programs.cell {
                command.arg("--loadmodule").arg(module);
            }
        })?;
        Ok(Self { programs, server, cluster: None, next_fresh: Cell::new(FIRST_FRESH) })
    }

    /// Starts a cluster of so many primaries, which share a core.
    ///
    /// # Errors
    /// It does not become one.
    pub fn cluster(programs: Programs, primaries: u16) -> Outcome<Self> {
        let files = TempDir::new()?;
        let mut nodes = cluster::form(&programs, primaries, files.path())?;
        let server = nodes.pop().ok_or("a cluster has a primary")?;
        let cluster = Some((nodes, files));
        Ok(Self { programs, server, cluster, next_fresh: Cell::new(FIRST_FRESH) })
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

    /// The address for clients: of the server, or of all nodes.
    #[must_use]
    pub fn url(&self) -> String {
        let Some((others, _)) = &self.cluster else {
            return format!("redis://{}", self.server.address());
        };
        let nodes = others.iter().chain([&self.server]).map(|node| node.address().to_string());
        format!("redis+cluster://{}", nodes.collect::<Vec<_>>().join(","))
    }

    /// A connection to look at the server, or a node, or to put something into it.
    ///
    /// # Errors
    /// The server is gone.
    pub fn inside(&self) -> Outcome<Inside> {
        Inside::connect(format!("redis://{}", self.server.address()))
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
