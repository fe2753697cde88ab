//! Ports to listen on.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::random::Random;

/// Below what systems give to clients: nobody connects *from* such a port, so it is still free when a
/// server comes back to it, and who calls it in between cannot happen to reach themselves. A cluster
/// bus, 10,000 above, is below that too.
const FIRST: u64 = 10_000;
const COUNT: u64 = 10_000;

/// A listener on a port that was free. This process meets a port only once in ten thousand calls, even
/// if the one who had it is away.
pub(crate) fn listen() -> TcpListener {
    static BEGIN: OnceLock<u64> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let begin = BEGIN.get_or_init(begin);
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (begin + step) % COUNT;
        let port = u16::try_from(port).expect("ports of the range are ports");
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return listener;
        }
    }
    panic!("no port of {FIRST} to {} is free", FIRST + COUNT - 1);
}

/// A port that was free a moment ago, and stays free for who comes back to it.
pub fn free() -> u16 {
    listen().local_addr().expect("listeners have an address").port()
}

/// Processes that test at the same time begin at different places.
fn begin() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| u64::from(since.subsec_nanos()));
    Random::new(since ^ (u64::from(process::id()) << 32)).within(0, COUNT - 1)
}
