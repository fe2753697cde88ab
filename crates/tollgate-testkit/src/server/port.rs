//! Ports to listen on.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::random::Random;

/// The first port. The range is below the ephemeral ports, so the system assigns none of them to a client: a port is
/// still free when its server restarts, and a client cannot connect to itself meanwhile. The ports of the cluster bus,
/// 10,000 above, are below the ephemeral ports too.
const FIRST: u64 = 10_000;
/// The number of ports.
const COUNT: u64 = 10_000;

/// Listens on a free port. This process uses a port again only after ten thousand calls, even if its server is down.
pub(crate) fn listen() -> TcpListener {
    static BEGIN: OnceLock<u64> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let begin = BEGIN.get_or_init(random_offset);
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (begin + step) % COUNT;
        let port = u16::try_from(port).expect("the range is below 65536");
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return listener;
        }
    }
    panic!("no port from {FIRST} to {} is free", FIRST + COUNT - 1);
}

/// Returns a port that is free, and stays free over restarts of its server.
pub fn free() -> u16 {
    listen().local_addr().expect("listeners have an address").port()
}

/// Returns a random offset into the range, so that concurrent test processes use different ports.
fn random_offset() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| u64::from(since.subsec_nanos()));
    Random::new(since ^ (u64::from(process::id()) << 32)).within(0, COUNT - 1)
}
