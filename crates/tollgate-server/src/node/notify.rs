//! Readiness, status and watchdog notifications to the service manager: `sd_notify(3)` of systemd.

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

use crate::node::NodeContext;
use crate::shutdown::{Shutdown, StageWaiter};

/// Interval between two checks of the status.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

const SERVING: &str = "serving";
const DEGRADED: &str = "serving, degraded: store lost";

/// Notifies the service manager of readiness, then of status changes until shutdown. Call it after the listeners are
/// bound.
pub(crate) fn start(context: &Arc<NodeContext>, shutdown: &Shutdown) -> JoinHandle<()> {
    let (context, stop, end) = (Arc::clone(context), shutdown.requested(), shutdown.finished());
    tokio::spawn(async move {
        if let Some(manager) = Manager::from_env() {
            manager.run(|| if context.is_degraded() { DEGRADED } else { SERVING }, stop, end).await;
        }
    })
}

/// The notification socket of the service manager.
#[derive(Debug)]
struct Manager {
    socket: UnixDatagram,
    address: SocketAddr,
    /// The watchdog timeout of the service manager.
    watchdog: Option<Duration>,
}

impl Manager {
    fn from_env() -> Option<Self> {
        let name = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty())?;
        let var = |name| env::var(name).ok();
        let watchdog =
            watchdog_timeout(var("WATCHDOG_USEC"), var("WATCHDOG_PID"), std::process::id());
        Self::connect(&name, watchdog)
            .inspect_err(|error| warn!(%error, ?name, "cannot use NOTIFY_SOCKET; not notifying"))
            .ok()
    }

    fn connect(name: &OsString, watchdog: Option<Duration>) -> io::Result<Self> {
        let (socket, address) = (UnixDatagram::unbound()?, address(name)?);
        // A notification must never block the server.
        socket.set_nonblocking(true)?;
        Ok(Self { socket, address, watchdog })
    }

    async fn run(
        &self,
        status: impl Fn() -> &'static str,
        mut stop: StageWaiter,
        mut end: StageWaiter,
    ) {
        let mut checks = interval(check_interval(self.watchdog));
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sent = status();
        let mut is_stopping = false;
        self.send(&format!("READY=1\nSTATUS={sent}"));
        loop {
            tokio::select! {
                // In this order, so that STOPPING is always sent before the end.
                biased;
                () = stop.wait(), if !is_stopping => {
                    is_stopping = true;
                    self.send("STOPPING=1\nSTATUS=draining");
                }
                () = end.wait() => return,
                _ = checks.tick() => {
                    if self.watchdog.is_some() && makes_progress().await {
                        self.send("WATCHDOG=1");
                    }
                    let current = status();
                    if current != sent && !is_stopping {
                        sent = current;
                        self.send(&format!("STATUS={current}"));
                    }
                }
            }
        }
    }

    /// Sends a notification. A failure is logged and does not affect the server.
    fn send(&self, message: &str) {
        if let Err(error) = self.socket.send_to_addr(message.as_bytes(), &self.address) {
            warn!(%error, message, "cannot notify the service manager");
        }
    }
}

/// Returns whether the runtime executes a new task. If the runtime is stuck, this does not return, and the watchdog of
/// the service manager expires.
async fn makes_progress() -> bool {
    tokio::spawn(async {}).await.is_ok()
}

/// Returns the interval between two checks: at most half of the watchdog timeout.
fn check_interval(watchdog: Option<Duration>) -> Duration {
    watchdog.map_or(CHECK_INTERVAL, |watchdog| (watchdog / 2).min(CHECK_INTERVAL))
}

/// Returns the watchdog timeout, unless the watchdog is for another process.
fn watchdog_timeout(
    micros: Option<String>,
    process: Option<String>,
    own_id: u32,
) -> Option<Duration> {
    if process.is_some_and(|process| process.parse() != Ok(own_id)) {
        return None;
    }
    let micros: u64 = micros?.parse().ok()?;
    // Half of a shorter timeout would be zero.
    (micros >= 2).then(|| Duration::from_micros(micros))
}

fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'/', ..] => SocketAddr::from_pathname(name),
        [b'@', name @ ..] => abstract_address(name),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "must be an absolute path or an abstract name (@…)",
        )),
    }
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &[u8]) -> io::Result<SocketAddr> {
    <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_: &[u8]) -> io::Result<SocketAddr> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "abstract names require Linux"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn uses_the_watchdog_of_this_process_only() {
        let second = Some(Duration::from_secs(1));
        assert_eq!(watchdog_timeout(micros("1000000"), None, 7), second);
        assert_eq!(watchdog_timeout(micros("1000000"), micros("7"), 7), second);
        assert_eq!(watchdog_timeout(micros("1000000"), micros("8"), 7), None);
        assert_eq!(watchdog_timeout(micros("1000000"), micros("me"), 7), None);
        for invalid in [None, micros("0"), micros("1"), micros("-5"), micros("soon")] {
            assert_eq!(watchdog_timeout(invalid, None, 7), None);
        }
    }

    #[test]
    fn notifies_twice_per_watchdog_timeout() {
        let interval = |millis| check_interval(Some(Duration::from_millis(millis)));
        assert_eq!(interval(500), Duration::from_millis(250));
        assert_eq!(interval(30_000), CHECK_INTERVAL);
        assert_eq!(check_interval(None), CHECK_INTERVAL);
    }

    #[test]
    fn accepts_paths_and_abstract_names() {
        for bad in ["", "run/notify", "vsock:2:1234"] {
            assert!(address(OsStr::new(bad)).is_err(), "{bad}");
        }
        let path = address(OsStr::new("/run/notify")).unwrap();
        assert_eq!(path.as_pathname(), Some("/run/notify".as_ref()));
        #[cfg(target_os = "linux")]
        assert!(address(OsStr::new("@notify")).unwrap().as_pathname().is_none());
    }

    #[test]
    fn stuck_runtime_sends_no_watchdog_message() {
        let name = env::temp_dir().join(format!("tollgate-stuck-{}", std::process::id()));
        let socket = UnixDatagram::bind(&name).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let read = || {
            let mut bytes = [0; 256];
            socket.recv(&mut bytes).map(|length| bytes[..length].to_vec())
        };
        let watchdog = Some(Duration::from_millis(20));
        let manager = Manager::connect(&name.clone().into(), watchdog).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let shutdown = Shutdown::on_signals().unwrap();
            let (stop, end) = (shutdown.requested(), shutdown.finished());
            let running = tokio::spawn(async move { manager.run(|| SERVING, stop, end).await });
            while !read_now(&socket).starts_with(b"WATCHDOG=1") {
                tokio::task::yield_now().await;
            }
            // This blocks the runtime's only thread: no message may arrive.
            socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            socket.set_nonblocking(false).unwrap();
            assert_eq!(read().unwrap_err().kind(), io::ErrorKind::WouldBlock);
            // Messages resume with the runtime.
            while !read_now(&socket).starts_with(b"WATCHDOG=1") {
                tokio::task::yield_now().await;
            }
            shutdown.finish();
            running.await.unwrap();
        });
        std::fs::remove_file(name).unwrap();
    }

    /// Returns the next message, or nothing if none has arrived.
    fn read_now(socket: &UnixDatagram) -> Vec<u8> {
        socket.set_nonblocking(true).unwrap();
        let mut bytes = [0; 256];
        socket.recv(&mut bytes).map_or(Vec::new(), |length| bytes[..length].to_vec())
    }
}
