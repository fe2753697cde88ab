//! The compared HTTP servers: how they are started, and the requests they receive.

use std::path::PathBuf;
use std::process::Command;

use tempfile::NamedTempFile;

use super::policy::{BURST, PERIOD_SECONDS, Policy};
use super::request::KEY;
use super::sample::Sample;
use super::task::{RequestSpec, Task};
use crate::Outcome;
use crate::load_mode::LoadMode;
use crate::server::{Address, Cores, Role, Server};

/// tollgate's default of `--max-keys`.
const DEFAULT_MAX_KEYS: u32 = 1_000_000;

/// Path of tollgate's check endpoint.
const CHECK: &str = "/check";

/// Paths of the programs, and their CPU placement.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The tollgate server.
    pub tollgate: PathBuf,
    /// throttlecrab-server.
    pub throttlecrab: PathBuf,
    /// This package's `axum_constant`.
    pub constant: PathBuf,
    /// This package's `http_load`.
    pub load: PathBuf,
    /// CPU placement.
    pub cores: Cores,
}

/// A running server and the requests it receives.
#[derive(Debug)]
pub struct Candidate {
    server: Server,
    requests: RequestSpec,
    /// Kept because the server may reload the file.
    _policy: Option<NamedTempFile>,
}

impl Programs {
    /// Starts tollgate with a policy and a capacity of at least `keys` keys.
    ///
    /// # Errors
    /// The server does not start.
    pub fn tollgate(&self, policy: Policy, keys: u32) -> Outcome<Candidate> {
        let file = policy.file()?;
        let mut command = self.cores.command(Role::Server, &self.tollgate);
        command.args(["serve", "--http", "127.0.0.1:0", "--policy"]).arg(file.path());
        if keys > DEFAULT_MAX_KEYS {
            command.args(["--max-keys", &keys.to_string()]);
        }
        let server = Server::start(command, Address::Logged)?;
        let requests = RequestSpec {
            path: CHECK.to_owned(),
            body: policy.body(),
            keys,
            rules: policy.rules(),
        };
        Ok(Candidate { server, requests, _policy: Some(file) })
    }

    /// Starts throttlecrab-server in its fastest configuration: its default store, with capacity
    /// for all keys, without cleanup during the measurement and without the list of denied keys.
    ///
    /// # Errors
    /// The server does not start.
    pub fn throttlecrab(&self, keys: u32) -> Outcome<Candidate> {
        let address = Address::free()?;
        let mut command = self.cores.command(Role::Server, &self.throttlecrab);
        command.args(["--http", "--http-host", "127.0.0.1", "--http-port"]);
        command.arg(address.port().to_string());
        command.args(["--store", "periodic", "--store-cleanup-interval", "3600"]);
        command.args(["--store-capacity", &keys.to_string()]);
        command.args(["--max-denied-keys", "0", "--log-level", "error"]);
        let server = Server::start(command, Address::Fixed(address))?;
        let body = format!(
            r#"{{"key":"user:{KEY}","max_burst":{BURST},"count_per_period":1,"period":{PERIOD_SECONDS}}}"#
        );
        let requests = RequestSpec { path: "/throttle".to_owned(), body, keys, rules: 1 };
        Ok(Candidate { server, requests, _policy: None })
    }

    /// Starts the baseline server with a response body of `bytes` bytes.
    ///
    /// # Errors
    /// The server does not start.
    pub fn constant(&self, bytes: f64, keys: u32) -> Outcome<Candidate> {
        let mut command = self.cores.command(Role::Server, &self.constant);
        command.args(["127.0.0.1:0", CHECK, &bytes.to_string()]);
        let server = Server::start(command, Address::Logged)?;
        let body = Policy::Default.body();
        let requests = RequestSpec { path: CHECK.to_owned(), body, keys, rules: 1 };
        Ok(Candidate { server, requests, _policy: None })
    }

    /// Returns the name and version of throttlecrab-server.
    ///
    /// # Errors
    /// The program is missing.
    pub fn throttlecrab_version(&self) -> Outcome<String> {
        let output = Command::new(&self.throttlecrab).arg("--version").output()?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// Runs the load generator against a server.
    ///
    /// # Errors
    /// A response is not the expected one. The error contains it.
    pub fn load(&self, candidate: &Candidate, connections: u32, mode: LoadMode) -> Outcome<Sample> {
        let Candidate { server, requests, .. } = candidate;
        let (address, server) = (server.address(), server.id());
        let task = Task { address, server, connections, requests: requests.clone(), mode };
        let mut command = self.cores.command(Role::Load, &self.load);
        let output = command.args(task.arguments()).output()?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {}", requests.path, message.trim()).into());
        }
        String::from_utf8(output.stdout)?.parse()
    }
}
