//! The soak: traffic at half of the peak for an hour, while keys, policies and overrides change and Redis is killed.
//! Memory must not grow, descriptors must stay flat, and no limit may be exceeded.

mod changes;
mod counted;
mod report;
mod samples;
mod system;
mod traffic;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

pub use report::{Failures, Report};

use self::changes::Changes;
use self::counted::Segments;
use self::samples::Samples;
use self::system::System;
use self::traffic::{StopOnDrop, Traffic};
use crate::scale::Scale;
use crate::stage::Stage;
use crate::timing::Timing;
use crate::waiting::wait_until;

/// The binary and the length of a soak.
#[derive(Debug, Clone)]
pub struct Soak {
    /// The `tollgate` binary.
    pub tollgate: PathBuf,
    /// The time under load. Redis is killed ten times within it.
    pub length: Duration,
}

/// Time between two samples of memory and descriptors, and between two changes of an override.
const TICK: Duration = Duration::from_millis(500);

/// Number of times that Redis is killed.
const REDIS_KILLS: u32 = 10;

/// Runs a soak, and returns its figures.
///
/// # Panics
/// If a server or node cannot be started or reached.
pub fn run(soak: &Soak) -> Report {
    let stage = Stage::new(soak.tollgate.clone(), Scale::Full, Timing::Report);
    let system = System::start(&stage);
    let peak = Traffic::peak(&system);
    let (segments, is_over) = (Segments::new(), AtomicBool::new(false));
    let traffic = Traffic::new(&system, &segments, peak / 2);
    let (mut samples, mut changes) = (Samples::new(), Changes::new(&system, &segments));
    let began = Instant::now();
    let results = thread::scope(|scope| {
        let stop = StopOnDrop(&is_over);
        let senders = traffic.spawn(scope, &is_over);
        let kill_every = soak.length / REDIS_KILLS;
        let mut next_kill = began + kill_every / 2;
        let mut tick = began;
        while began.elapsed() < soak.length {
            tick += TICK;
            wait_until(tick);
            samples.take(&system);
            changes.change();
            if Instant::now() >= next_kill {
                changes.kill_redis();
                next_kill += kill_every;
            }
        }
        drop(stop);
        senders.into_iter().map(|sender| sender.join().expect("a sender")).collect::<Vec<_>>()
    });
    let changes = changes.finish();
    Report::new(&system, peak, (began.elapsed(), results), &samples, changes, &segments.lengths())
}
