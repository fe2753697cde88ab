//! Tells a service manager how far the service is, where one listens: `sd_notify(3)` of systemd.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use crate::app::App;
use crate::shutdown::{Shutdown, StageWaiter};

/// How often it is looked whether there is something new to say.
const LOOK_EVERY: Duration = Duration::from_secs(1);

const TOGETHER: &str = "serving";
const ALONE: &str = "serving alone: the store is lost";

/// Says that the service is ready, then how it fares, until its end. To be called once it listens.
pub(crate) fn start(app: &Arc<App>, shutdown: &Shutdown) -> JoinHandle<()> {
    let (app, stop, end) = (Arc::clone(app), shutdown.requested(), shutdown.finished());
    tokio::spawn(async move {
        if let Some(manager) = Manager::of_process() {
            manager.keep(|| if app.is_degraded() { ALONE } else { TOGETHER }, stop, end).await;
        }
    })
}

/// Who started the service, and wants to hear of it.
#[derive(Debug)]
struct Manager {
    socket: UnixDatagram,
    address: SocketAddr,
    /// For how long it bears silence.
    patience: Option<Duration>,
}

impl Manager {
    fn of_process() -> Option<Self> {
        let name = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty())?;
        let told = |name| env::var(name).ok();
        let patience = patience(told("WATCHDOG_USEC"), told("WATCHDOG_PID"), std::process::id());
        Self::at(&name, patience)
            .inspect_err(
                |error| warn!(%error, ?name, "NOTIFY_SOCKET cannot be used: nobody is told"),
            )
            .ok()
    }

    fn at(name: &OsString, patience: Option<Duration>) -> io::Result<Self> {
        let (socket, address) = (UnixDatagram::unbound()?, address(name)?);
        // Nothing that is said here is worth waiting for.
        socket.set_nonblocking(true)?;
        Ok(Self { socket, address, patience })
    }

    async fn keep(
        &self,
        fares: impl Fn() -> &'static str,
        mut stop: StageWaiter,
        mut end: StageWaiter,
    ) {
        let mut looks = interval(between_looks(self.patience));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = fares();
        let mut is_ending = false;
        self.say(&format!("READY=1\nSTATUS={told}"));
        loop {
            tokio::select! {
                // In this order, so that the end never comes before its beginning was told.
                biased;
                () = stop.wait(), if !is_ending => {
                    is_ending = true;
                    self.say("STOPPING=1\nSTATUS=draining");
                }
                () = end.wait() => return,
                _ = looks.tick() => {
                    if self.patience.is_some() && makes_progress().await {
                        self.say("WATCHDOG=1");
                    }
                    let now = fares();
                    if now != told && !is_ending {
                        told = now;
                        self.say(&format!("STATUS={now}"));
                    }
                }
            }
        }
    }

    /// Says it, or does not: a manager that does not listen is no reason to serve worse.
    fn say(&self, words: &str) {
        if let Err(error) = self.socket.send_to_addr(words.as_bytes(), &self.address) {
            warn!(%error, words, "the service manager could not be told");
        }
    }
}

/// Whether the runtime still takes on work and does it. Where it does not, this does not return either, and
/// the manager is left to its own conclusions.
async fn makes_progress() -> bool {
    tokio::spawn(async {}).await.is_ok()
}

/// A manager that bears silence for so long hears twice as often.
fn between_looks(patience: Option<Duration>) -> Duration {
    patience.map_or(LOOK_EVERY, |patience| (patience / 2).min(LOOK_EVERY))
}

/// For how long silence is borne of this process; a watchdog may be that of another.
fn patience(micros: Option<String>, process: Option<String>, own: u32) -> Option<Duration> {
    if process.is_some_and(|process| process.parse() != Ok(own)) {
        return None;
    }
    let micros: u64 = micros?.parse().ok()?;
    // Less than this between two looks is no interval.
    (micros >= 2).then(|| Duration::from_micros(micros))
}

fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'/', ..] => SocketAddr::from_pathname(name),
        [b'@', name @ ..] => abstract_address(name),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "neither an absolute path nor an abstract name",
        )),
    }
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &[u8]) -> io::Result<SocketAddr> {
    <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_: &[u8]) -> io::Result<SocketAddr> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "abstract names are of Linux"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_watchdog_is_heeded_if_it_is_of_this_process() {
        let second = Some(Duration::from_secs(1));
        assert_eq!(patience(micros("1000000"), None, 7), second);
        assert_eq!(patience(micros("1000000"), micros("7"), 7), second);
        assert_eq!(patience(micros("1000000"), micros("8"), 7), None);
        assert_eq!(patience(micros("1000000"), micros("me"), 7), None);
        for nothing in [None, micros("0"), micros("1"), micros("-5"), micros("soon")] {
            assert_eq!(patience(nothing, None, 7), None);
        }
    }

    #[test]
    fn it_is_told_twice_in_the_time_it_bears() {
        let of = |millis| between_looks(Some(Duration::from_millis(millis)));
        assert_eq!(of(500), Duration::from_millis(250));
        assert_eq!(of(30_000), LOOK_EVERY);
        assert_eq!(between_looks(None), LOOK_EVERY);
    }

    #[test]
    fn names_are_paths_or_abstract() {
        for bad in ["", "run/notify", "vsock:2:1234"] {
            assert!(address(OsStr::new(bad)).is_err(), "{bad}");
        }
        let path = address(OsStr::new("/run/notify")).unwrap();
        assert_eq!(path.as_pathname(), Some("/run/notify".as_ref()));
        #[cfg(target_os = "linux")]
        assert!(address(OsStr::new("@notify")).unwrap().as_pathname().is_none());
    }

    #[test]
    fn a_runtime_that_is_stuck_does_not_say_that_it_is_well() {
        let name = env::temp_dir().join(format!("tollgate-stuck-{}", std::process::id()));
        let heard = UnixDatagram::bind(&name).unwrap();
        heard.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let read = || {
            let mut bytes = [0; 256];
            heard.recv(&mut bytes).map(|length| bytes[..length].to_vec())
        };
        let patience = Some(Duration::from_millis(20));
        let manager = Manager::at(&name.clone().into(), patience).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let shutdown = Shutdown::on_signals().unwrap();
            let (stop, end) = (shutdown.requested(), shutdown.finished());
            let keeping = tokio::spawn(async move { manager.keep(|| TOGETHER, stop, end).await });
            while !read_now(&heard).starts_with(b"WATCHDOG=1") {
                tokio::task::yield_now().await;
            }
            // The runtime's only thread waits here: what still comes is not from a runtime that works.
            heard.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            heard.set_nonblocking(false).unwrap();
            assert_eq!(read().unwrap_err().kind(), io::ErrorKind::WouldBlock);
            // It goes on once that does.
            while !read_now(&heard).starts_with(b"WATCHDOG=1") {
                tokio::task::yield_now().await;
            }
            shutdown.finish();
            keeping.await.unwrap();
        });
        std::fs::remove_file(name).unwrap();
    }

    /// What was said, if something was.
    fn read_now(heard: &UnixDatagram) -> Vec<u8> {
        heard.set_nonblocking(true).unwrap();
        let mut bytes = [0; 256];
        heard.recv(&mut bytes).map_or(Vec::new(), |length| bytes[..length].to_vec())
    }
}
