//! Cost of the dashboard for a busy node.

mod load;
mod open_pages;
pub mod report;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::cpu::Meter;
use crate::rounds::Rounds;
use crate::server::{Address, Cores, Role, Server};
use load::Load;
use open_pages::OpenPages;

/// Size of the benchmark.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Number of keys in use.
    pub keys: u32,
    /// Checks per second.
    pub rate: u32,
    /// Rounds, each with 0, 1 and 10 pages.
    pub rounds: u32,
    /// Length of each measurement.
    pub window: Duration,
}

impl Scale {
    /// A full run.
    pub const FULL: Self =
        Self { keys: 100_000, rate: 5000, rounds: 5, window: Duration::from_secs(10) };
    /// A short run, to test the program.
    pub const QUICK: Self =
        Self { keys: 10_000, rate: 1000, rounds: 1, window: Duration::from_secs(3) };
}

/// Paths of the programs.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The tollgate server.
    pub tollgate: PathBuf,
    /// `redis-server`.
    pub redis: PathBuf,
}

/// CPU time of the node in percent of a core, by number of open pages.
#[derive(Debug, Default)]
pub struct Figures {
    none: Rounds,
    one: Rounds,
    ten: Rounds,
    /// Bytes per second sent to one page.
    bytes: Rounds,
    /// Completed checks per second.
    rate: Rounds,
}

/// Measures a node with 0, 1 and 10 open pages in turn.
///
/// # Errors
/// A program does not start, or exits early.
pub fn measure(programs: &Programs, scale: Scale) -> Outcome<Figures> {
    let redis = start_redis(programs)?;
    let mut command = Cores::Any.command(Role::Server, &programs.tollgate);
    let url = format!("redis://{}", redis.address());
    command.args(["serve", "--http", "127.0.0.1:0", "--redis", &url]);
    let node = Server::start(command, Address::Logged("http"))?;
    let meter = Meter::of(&node.id().to_string())?;
    let load = Load::begin(node.address(), scale)?;
    let mut figures = Figures::default();
    for _ in 0..scale.rounds {
        for pages in [0_u8, 1, 10] {
            let open_pages = OpenPages::begin(node.address(), pages)?;
            let (before, answered, started) = (meter.seconds()?, load.answered(), Instant::now());
            wait_until(started + scale.window);
            let (seconds, lasted) = (meter.seconds()? - before, started.elapsed().as_secs_f64());
            let checks = f64::from(load.answered() - answered) / lasted;
            let read = open_pages.end()?;
            match pages {
                0 => figures.none.push(seconds / lasted * 100.0),
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

/// Waits until `end`, also after spurious wake-ups.
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
    Server::start(command, Address::Fixed(address))
}
