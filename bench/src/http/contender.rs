//! Who takes part over HTTP: how each is started, and what it is asked.

use std::path::PathBuf;
use std::process::Command;

use tempfile::NamedTempFile;

use super::policy::{BURST, PERIOD_SECONDS, Policy};
use super::request::KEY;
use super::sample::Sample;
use super::task::{Ask, Task};
use crate::Outcome;
use crate::server::{Address, Cores, Role, Server};
use crate::work::Work;

/// As many keys as tollgate holds when it is not told.
const DEFAULT_MAX_KEYS: u32 = 1_000_000;

/// tollgate's way in.
const CHECK: &str = "/check";

/// Where the programs are, and where they run.
#[derive(Debug, Clone)]
pub struct Stage {
    /// tollgate itself.
    pub tollgate: PathBuf,
    /// throttlecrab's server.
    pub throttlecrab: PathBuf,
    /// This package's `axum_constant`.
    pub constant: PathBuf,
    /// This package's `http_load`.
    pub load: PathBuf,
    /// The cores.
    pub cores: Cores,
}

/// A server that runs and what it is asked.
#[derive(Debug)]
pub struct Contender {
    server: Server,
    ask: Ask,
    /// It may be read again as long as the server runs.
    _policy: Option<NamedTempFile>,
}

impl Stage {
    /// tollgate with a policy and room for so many keys.
    ///
    /// # Errors
    /// It does not start.
    pub fn tollgate(&self, policy: Policy, keys: u32) -> Outcome<Contender> {
        let file = policy.file()?;
        let mut command = self.cores.command(Role::Server, &self.tollgate);
        command.args(["serve", "--http", "127.0.0.1:0", "--policy"]).arg(file.path());
        if keys > DEFAULT_MAX_KEYS {
            command.args(["--max-keys", &keys.to_string()]);
        }
        let server = Server::start(command, Address::Announced)?;
        let ask = Ask { path: CHECK.to_owned(), body: policy.body(), keys, rules: policy.rules() };
        Ok(Contender { server, ask, _policy: Some(file) })
    }

    /// throttlecrab's server as it is fastest: its default store, which never looks through its keys
    /// while we measure and has room for all of them, and no list of the keys it refused.
    ///
    /// # Errors
    /// It does not start.
    pub fn throttlecrab(&self, keys: u32) -> Outcome<Contender> {
        let address = Address::free()?;
        let mut command = self.cores.command(Role::Server, &self.throttlecrab);
        command.args(["--http", "--http-host", "127.0.0.1", "--http-port"]);
        command.arg(address.port().to_string());
        command.args(["--store", "periodic", "--store-cleanup-interval", "3600"]);
        command.args(["--store-capacity", &keys.to_string()]);
        command.args(["--max-denied-keys", "0", "--log-level", "error"]);
        let server = Server::start(command, Address::Told(address))?;
        let body = format!(
            r#"{{"key":"user:{KEY}","max_burst":{BURST},"count_per_period":1,"period":{PERIOD_SECONDS}}}"#
        );
        let ask = Ask { path: "/throttle".to_owned(), body, keys, rules: 1 };
        Ok(Contender { server, ask, _policy: None })
    }

    /// axum answering everything with as many bytes.
    ///
    /// # Errors
    /// It does not start.
    pub fn constant(&self, bytes: f64, keys: u32) -> Outcome<Contender> {
        let mut command = self.cores.command(Role::Server, &self.constant);
        command.args(["127.0.0.1:0", CHECK, &bytes.to_string()]);
        let server = Server::start(command, Address::Announced)?;
        let body = Policy::Default.body();
        let ask = Ask { path: CHECK.to_owned(), body, keys, rules: 1 };
        Ok(Contender { server, ask, _policy: None })
    }

    /// The name and version that throttlecrab's server gives itself.
    ///
    /// # Errors
    /// It is not there.
    pub fn peer(&self) -> Outcome<String> {
        let output = Command::new(&self.throttlecrab).arg("--version").output()?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// Puts a load on a contender.
    ///
    /// # Errors
    /// An answer that is not the right one, and which.
    pub fn load(&self, contender: &Contender, connections: u32, work: Work) -> Outcome<Sample> {
        let Contender { server, ask, .. } = contender;
        let (address, server) = (server.address(), server.id());
        let task = Task { address, server, connections, ask: ask.clone(), work };
        let mut command = self.cores.command(Role::Load, &self.load);
        let output = command.args(task.arguments()).output()?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {}", ask.path, complaint.trim()).into());
        }
        String::from_utf8(output.stdout)?.parse()
    }
}
