//! What the dashboard costs a node that is busy with something else.

mod load;
pub mod report;
mod watching;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::cpu::Meter;
use crate::rounds::Rounds;
use crate::server::{Address, Cores, Role, Server};
use load::Load;
use watching::Watching;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Keys in use.
    pub keys: u32,
    /// Checks a second.
    pub rate: u32,
    /// By turns with and without.
    pub rounds: u32,
    /// How long each of them is.
    pub window: Duration,
}

impl Scale {
    /// As figures are written down.
    pub const FULL: Self =
        Self { keys: 100_000, rate: 5000, rounds: 5, window: Duration::from_secs(10) };
    /// To try it.
    pub const QUICK: Self =
        Self { keys: 10_000, rate: 1000, rounds: 1, window: Duration::from_secs(3) };
}

/// The programs that take part.
#[derive(Debug, Clone)]
pub struct Programs {
    /// Ours.
    pub tollgate: PathBuf,
    /// The server that nodes share.
    pub redis: PathBuf,
}

/// Processor time of the node in hundredths of a core, by how many watch it.
#[derive(Debug, Default)]
pub struct Figures {
    nobody: Rounds,
    one: Rounds,
    ten: Rounds,
    /// Bytes a second that one who watches is sent.
    bytes: Rounds,
    /// Checks a second that were answered.
    rate: Rounds,
}

/// Measures a node by turns: nobody watches, one does, ten do.
///
/// # Errors
/// A program does not start, or ends too soon.
pub fn measure(programs: &Programs, scale: Scale) -> Outcome<Figures> {
    let redis = start_redis(programs)?;
    let mut command = Cores::Any.command(Role::Server, &programs.tollgate);
    let url = format!("redis://{}", redis.address());
    command.args(["serve", "--http", "127.0.0.1:0", "--redis", &url]);
    let node = Server::start(command, Address::Announced)?;
    let meter = Meter::of(&node.id().to_string())?;
    let load = Load::begin(node.address(), scale)?;
    let mut figures = Figures::default();
    for _ in 0..scale.rounds {
        for watchers in [0_u8, 1, 10] {
            let watching = Watching::begin(node.address(), watchers)?;
            let (before, answered, begun) = (meter.seconds()?, load.answered(), Instant::now());
            wait_until(begun + scale.window);
            let (seconds, lasted) = (meter.seconds()? - before, begun.elapsed().as_secs_f64());
            let checks = f64::from(load.answered() - answered) / lasted;
            let read = watching.end()?;
            match watchers {
                0 => figures.nobody.push(seconds / lasted * 100.0),
                1 => {
                    figures.one.push(seconds / lasted * 100.0);
                    figures.bytes.push(f64::from(read) / lasted);
                    figures.rate.push(checks);
                }
                _ => figures.ten.push(seconds / lasted * 100.0),
            }
        }
    }
    load.end()?;
    Ok(figures)
}

/// Waits, also when something wakes this thread before.
fn wait_until(end: Instant) {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::park_timeout(left);
    }
}

fn start_redis(programs: &Programs) -> Outcome<Server> {
    let address = Address::free()?;
    let mut command = Cores::Any.command(Role::Server, &programs.redis);
    command.args(["--port", &address.port().to_string(), "--bind", "127.0.0.1"]);
    command.args(["--save", "", "--appendonly", "no"]);
    Server::start(command, Address::Told(address))
}
