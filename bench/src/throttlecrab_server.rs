//! throttlecrab-server, a peer over HTTP, RESP and gRPC.

use std::path::PathBuf;

use crate::Outcome;
use crate::server::{Address, Cores, Role, Server};

/// Starts the server with one transport (`http`, `redis` or `grpc`) in its fastest configuration: its default store, with
/// capacity for all keys, without cleanup during the measurement and without the list of denied keys.
///
/// # Errors
/// The server does not start.
pub fn start(program: &PathBuf, cores: Cores, transport: &str, keys: u32) -> Outcome<Server> {
    let address = Address::free()?;
    let mut command = cores.command(Role::Server, program);
    let flags = [format!("--{transport}"), format!("--{transport}-host"), "127.0.0.1".to_owned()];
    command.args(flags).args([format!("--{transport}-port"), address.port().to_string()]);
    command.args(["--store", "periodic", "--store-cleanup-interval", "3600"]);
    command.args(["--store-capacity", &keys.to_string()]);
    command.args(["--max-denied-keys", "0", "--log-level", "error"]);
    Server::start(command, Address::Fixed(address))
}
