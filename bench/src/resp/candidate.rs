//! The compared RESP servers: how they are started, and the commands they receive.

use std::path::PathBuf;

use super::codec::{PROTOCOL, RespCodec};
use super::command::Command;
use crate::load::candidate::Candidate;
use crate::load::exchange::exchange;
use crate::load::task::RequestSpec;
use crate::server::{Address, Cores, Role, Server};
use crate::{Outcome, redis_server, throttlecrab_server};

/// Paths of the programs, and their CPU placement.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The tollgate server.
    pub tollgate: PathBuf,
    /// throttlecrab-server.
    pub throttlecrab: PathBuf,
    /// `redis-server`.
    pub redis: PathBuf,
    /// This package's `resp_constant`.
    pub constant: PathBuf,
    /// This package's `load`.
    pub load: PathBuf,
    /// CPU placement.
    pub cores: Cores,
}

impl Programs {
    /// Starts tollgate for one of its commands.
    ///
    /// # Errors
    /// The server does not start.
    pub fn tollgate(&self, command: Command, keys: u32) -> Outcome<Candidate> {
        let mut serve = self.cores.command(Role::Server, &self.tollgate);
        serve.args(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
        Ok(candidate(Server::start(serve, Address::Logged("resp"))?, command, keys))
    }

    /// Starts throttlecrab-server with capacity for all keys.
    ///
    /// # Errors
    /// The server does not start.
    pub fn throttlecrab(&self, keys: u32) -> Outcome<Candidate> {
        let server = throttlecrab_server::start(&self.throttlecrab, self.cores, "redis", keys)?;
        Ok(candidate(server, Command::Throttle, keys))
    }

    /// Starts Redis without persistence.
    ///
    /// # Errors
    /// The server does not start.
    pub fn redis(&self, keys: u32) -> Outcome<Candidate> {
        let server = redis_server::start(&self.redis, self.cores, |_| {})?;
        Ok(candidate(server, Command::Incr, keys))
    }

    /// Starts the baseline server with a reply of another server as the constant.
    ///
    /// # Errors
    /// The server does not start.
    pub fn constant(&self, other: &Candidate, command: Command, keys: u32) -> Outcome<Candidate> {
        let reply = exchange(other.server.address(), &mut RespCodec::new(command))?;
        let mut serve = self.cores.command(Role::Server, &self.constant);
        serve.args(["127.0.0.1:0", str::from_utf8(&reply)?]);
        Ok(candidate(Server::start(serve, Address::Logged("resp"))?, command, keys))
    }
}

fn candidate(server: Server, command: Command, keys: u32) -> Candidate {
    let protocol = vec![PROTOCOL.to_owned(), command.name().to_owned()];
    Candidate { server, requests: RequestSpec { protocol, keys, rules: 1 }, config: None }
}
