//! `redis-server`, as a store and as a peer.

use std::path::PathBuf;
use std::process::Command;

use crate::Outcome;
use crate::server::{Address, Cores, Role, Server, printed_version};

/// Starts a server without persistence; `settings` adds arguments.
///
/// # Errors
/// The server does not start.
pub fn start(
    program: &PathBuf,
    cores: Cores,
    settings: impl FnOnce(&mut Command),
) -> Outcome<Server> {
    let address = Address::free()?;
    let mut command = cores.command(Role::Server, program);
    command.args(["--port", &address.port().to_string(), "--bind", "127.0.0.1"]);
    command.args(["--save", "", "--appendonly", "no"]);
    settings(&mut command);
    Server::start(command, Address::Fixed(address))
}

/// Returns the name and version, such as `redis-server 7.0.15`.
///
/// # Errors
/// The program is missing, or does not print its version.
pub fn version(program: &PathBuf) -> Outcome<String> {
    let text = printed_version(program)?;
    let version = text.split_whitespace().find_map(|word| word.strip_prefix("v="));
    Ok(format!("redis-server {}", version.ok_or_else(|| format!("no version in: {text}"))?))
}
