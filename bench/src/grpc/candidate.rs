//! The compared gRPC servers: how they are started, and the calls they receive.

use std::path::PathBuf;

use super::call::{Call, DOMAIN, ENTRY};
use super::codec::{GrpcCodec, PROTOCOL};
use crate::http::policy::{BURST, PERIOD_SECONDS};
use crate::load::candidate::Candidate;
use crate::load::exchange::exchange;
use crate::load::task::RequestSpec;
use crate::server::{Address, Cores, Role, Server};
use crate::{Outcome, config_file, throttlecrab_server};

/// Paths of the programs, and their CPU placement.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The tollgate server.
    pub tollgate: PathBuf,
    /// throttlecrab-server.
    pub throttlecrab: PathBuf,
    /// `limitador_rls`, the service on the limitador library.
    pub limitador: PathBuf,
    /// This package's `grpc_constant`.
    pub constant: PathBuf,
    /// This package's `load`.
    pub load: PathBuf,
    /// CPU placement.
    pub cores: Cores,
}

impl Programs {
    /// Starts tollgate with one rule for all clients.
    ///
    /// # Errors
    /// The server does not start.
    pub fn tollgate(&self, keys: u32) -> Outcome<Candidate> {
        let policy = config_file::create(&format!(
            "version: 1\n\
             rules:\n\
             - name: clients\n  \
               match: {{ facts: {{ domain: {DOMAIN}, descriptor: {ENTRY}=* }} }}\n  \
               per: [domain, descriptor]\n  \
               limits: [{{ rate: 1/{PERIOD_SECONDS}s, burst: {BURST}, algorithm: token_bucket }}]\n"
        ))?;
        let mut serve = self.cores.command(Role::Server, &self.tollgate);
        serve.args(["serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--policy"]);
        serve.arg(policy.path());
        let server = Server::start(serve, Address::Logged("grpc"))?;
        let candidate = candidate(server, Call::ShouldRateLimit, keys);
        Ok(Candidate { config: Some(policy), ..candidate })
    }

    /// Starts throttlecrab-server with capacity for all keys.
    ///
    /// # Errors
    /// The server does not start.
    pub fn throttlecrab(&self, keys: u32) -> Outcome<Candidate> {
        let server = throttlecrab_server::start(&self.throttlecrab, self.cores, "grpc", keys)?;
        Ok(candidate(server, Call::Throttle, keys))
    }

    /// Starts limitador with one limit for all clients, and capacity for all keys.
    ///
    /// # Errors
    /// The server does not start.
    pub fn limitador(&self, keys: u32) -> Outcome<Candidate> {
        let mut serve = self.cores.command(Role::Server, &self.limitador);
        let numbers = [BURST, PERIOD_SECONDS].map(|number| number.to_string());
        serve.args(["127.0.0.1:0", DOMAIN]).args(numbers);
        serve.args([format!("descriptors[0].{ENTRY}"), keys.to_string()]);
        let server = Server::start(serve, Address::Logged("grpc"))?;
        Ok(candidate(server, Call::ShouldRateLimit, keys))
    }

    /// Starts the baseline server with a response of another server as the constant.
    ///
    /// # Errors
    /// The server does not start.
    pub fn constant(&self, other: &Candidate, keys: u32) -> Outcome<Candidate> {
        let mut codec = GrpcCodec::new(Call::ShouldRateLimit)?;
        exchange(other.server.address(), &mut codec)?;
        let response: String = codec.message().iter().map(|byte| format!("{byte:02x}")).collect();
        let mut serve = self.cores.command(Role::Server, &self.constant);
        serve.args(["127.0.0.1:0", &response]);
        let server = Server::start(serve, Address::Logged("grpc"))?;
        Ok(candidate(server, Call::ShouldRateLimit, keys))
    }
}

fn candidate(server: Server, call: Call, keys: u32) -> Candidate {
    let protocol = vec![PROTOCOL.to_owned(), call.path().to_owned()];
    Candidate { server, requests: RequestSpec { protocol, keys, rules: 1 }, config: None }
}
