//! A running Redis server or cluster, and its load generator.

use std::cell::Cell;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::admin::AdminConnection;
use super::cluster_setup;
use super::method::Method;
use super::sample::Sample;
use super::task::{RequestSpec, Task};
use crate::cpu::Meter;
use crate::load_mode::LoadMode;
use crate::server::{Cores, Role, Server};
use crate::{Outcome, redis_server};

/// First number of unused keys, above the keys that are used in every round.
const FIRST_UNUSED: u32 = 10_000_000;

/// Paths of the programs, and their CPU placement.
#[derive(Debug, Clone)]
pub struct Programs {
    /// `redis-server`.
    pub redis: PathBuf,
    /// The redis-cell module and its version; `None` skips redis-cell.
    pub cell: Option<(PathBuf, String)>,
    /// This package's `redis_load`.
    pub load: PathBuf,
    /// CPU placement.
    pub cores: Cores,
}

impl Programs {
    /// Starts a server without persistence; `settings` adds arguments.
    pub(super) fn start(&self, settings: impl FnOnce(&mut Command)) -> Outcome<Server> {
        redis_server::start(&self.redis, self.cores, settings)
    }
}

/// A running server or cluster.
#[derive(Debug)]
pub struct Deployment {
    programs: Programs,
    server: Server,
    /// The other nodes of the cluster, and the directory of the node files; `None` without a
    /// cluster.
    cluster: Option<(Vec<Server>, TempDir)>,
    next_unused: Cell<u32>,
}

impl Deployment {
    /// Starts one server, without persistence.
    ///
    /// # Errors
    /// The server does not start.
    pub fn start(programs: Programs) -> Outcome<Self> {
        let server = programs.start(|command| {
            if let Some((module, _)) = &programs.cell {
                command.arg("--loadmodule").arg(module);
            }
        })?;
        Ok(Self { programs, server, cluster: None, next_unused: Cell::new(FIRST_UNUSED) })
    }

    /// Starts a cluster of `primaries` nodes, which share a core.
    ///
    /// # Errors
    /// The nodes do not start or do not form a cluster.
    pub fn cluster(programs: Programs, primaries: u16) -> Outcome<Self> {
        let files = TempDir::new()?;
        let mut nodes = cluster_setup::start(&programs, primaries, files.path())?;
        let server = nodes.pop().ok_or("a cluster needs at least one primary")?;
        let cluster = Some((nodes, files));
        Ok(Self { programs, server, cluster, next_unused: Cell::new(FIRST_UNUSED) })
    }

    /// Returns the version of redis-cell, if it is loaded.
    #[must_use]
    pub fn cell(&self) -> Option<&str> {
        self.programs.cell.as_ref().map(|(_, version)| version.as_str())
    }

    /// Returns the methods that this deployment supports.
    #[must_use]
    pub fn methods(&self) -> Vec<Method> {
        let cell = self.cell().map(|_| Method::Cell);
        [Method::Tollgate, Method::Multiplexed, Method::Pool].into_iter().chain(cell).collect()
    }

    /// Returns the URL of the server or of all cluster nodes.
    #[must_use]
    pub fn url(&self) -> String {
        let Some((others, _)) = &self.cluster else {
            return format!("redis://{}", self.server.address());
        };
        let nodes = others.iter().chain([&self.server]).map(|node| node.address().to_string());
        format!("redis+cluster://{}", nodes.collect::<Vec<_>>().join(","))
    }

    /// Opens an administrative connection to the server, or to one node of the cluster.
    ///
    /// # Errors
    /// The connection is refused.
    pub fn admin(&self) -> Outcome<AdminConnection> {
        AdminConnection::connect(format!("redis://{}", self.server.address()))
    }

    /// Reserves `keys` unused key numbers and returns the first.
    #[must_use]
    pub fn unused_keys(&self, keys: u32) -> u32 {
        self.next_unused.replace(self.next_unused.get() + keys)
    }

    /// Runs the load generator against the deployment.
    ///
    /// # Errors
    /// A decision is wrong. The error contains the method and the details.
    pub fn load(
        &self,
        method: Method,
        callers: u32,
        requests: RequestSpec,
        mode: LoadMode,
    ) -> Outcome<Sample> {
        let task = Task { url: self.url(), method, callers, requests, mode };
        let mut command = self.programs.cores.command(Role::Load, &self.programs.load);
        command.args(task.arguments());
        stdout_of(command).map_err(|message| format!("{}: {message}", method.name()))?.parse()
    }

    /// Runs `redis-benchmark`. Returns its output and the CPU time of the server in seconds.
    ///
    /// # Errors
    /// `redis-benchmark` fails.
    pub fn benchmark(&self, arguments: &[&str]) -> Outcome<(String, f64)> {
        let mut command = self.programs.cores.command(Role::Load, &"redis-benchmark".into());
        let address = self.server.address();
        command.args(["-h", &address.ip().to_string(), "-p", &address.port().to_string()]);
        command.args(arguments);
        let meter = Meter::of(&self.server.id().to_string())?;
        let before = meter.seconds()?;
        let output = stdout_of(command)?;
        Ok((output, meter.seconds()? - before))
    }
}

fn stdout_of(mut command: Command) -> Outcome<String> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
