//! The compared HTTP servers: how they are started, and the requests they receive.

use std::path::PathBuf;

use super::codec::PROTOCOL;
use super::policy::{BURST, PERIOD_SECONDS, Policy};
use crate::load::candidate::Candidate;
use crate::load::task::RequestSpec;
use crate::load::template::KEY;
use crate::server::{Address, Cores, Role, Server};
use crate::{Outcome, throttlecrab_server};

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
    /// `limitador_rls`, the service on the limitador library.
    pub limitador: PathBuf,
    /// This package's `axum_constant`.
    pub constant: PathBuf,
    /// This package's `load`.
    pub load: PathBuf,
    /// CPU placement.
    pub cores: Cores,
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
        let server = Server::start(command, Address::Logged("http"))?;
        let requests = requests(CHECK, policy.body(), keys, policy.rules());
        Ok(Candidate { config: Some(file), ..candidate(server, requests) })
    }

    /// Starts throttlecrab-server with capacity for all keys.
    ///
    /// # Errors
    /// The server does not start.
    pub fn throttlecrab(&self, keys: u32) -> Outcome<Candidate> {
        let server = throttlecrab_server::start(&self.throttlecrab, self.cores, "http", keys)?;
        let body = format!(
            r#"{{"key":"user:{KEY}","max_burst":{BURST},"count_per_period":1,"period":{PERIOD_SECONDS}}}"#
        );
        Ok(candidate(server, requests("/throttle", body, keys, 1)))
    }

    /// Starts limitador with one limit for all clients, and capacity for all keys.
    ///
    /// # Errors
    /// The server does not start.
    pub fn limitador(&self, keys: u32) -> Outcome<Candidate> {
        let mut command = self.cores.command(Role::Server, &self.limitador);
        let numbers = [BURST, PERIOD_SECONDS].map(|number| number.to_string());
        command.args(["--http", "127.0.0.1:0", "bench"]).args(numbers);
        command.args(["descriptors[0].client", &keys.to_string()]);
        let server = Server::start(command, Address::Logged("http"))?;
        let body =
            format!(r#"{{"namespace":"bench","values":{{"client":"user:{KEY}"}},"delta":1}}"#);
        Ok(candidate(server, requests("/check_and_report", body, keys, 1)))
    }

    /// Starts the baseline server with a response body of `bytes` bytes.
    ///
    /// # Errors
    /// The server does not start.
    pub fn constant(&self, bytes: f64, keys: u32) -> Outcome<Candidate> {
        let mut command = self.cores.command(Role::Server, &self.constant);
        command.args(["127.0.0.1:0", CHECK, &bytes.to_string()]);
        let server = Server::start(command, Address::Logged("http"))?;
        Ok(candidate(server, requests(CHECK, Policy::Default.body(), keys, 1)))
    }
}

fn requests(path: &str, body: String, keys: u32, rules: u32) -> RequestSpec {
    let protocol = vec![PROTOCOL.to_owned(), path.to_owned(), body];
    RequestSpec { protocol, keys, rules }
}

fn candidate(server: Server, requests: RequestSpec) -> Candidate {
    Candidate { server, requests, config: None }
}
