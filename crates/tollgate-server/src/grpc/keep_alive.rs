//! Keep-alive: a client that sends no requests must answer PINGs.

use std::future::pending;
use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::{sleep, timeout};

use crate::listener::Progress;

/// Time without requests after which the client must answer a PING, and the time that it has to answer.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Waits until a PING is not answered in time.
pub(super) async fn failed(pings: Option<PingPong>, progress: &Progress) {
    let Some(mut pings) = pings else { return pending().await };
    loop {
        let requests = progress.requests();
        sleep(KEEP_ALIVE).await;
        if progress.requests() != requests {
            continue;
        }
        match timeout(KEEP_ALIVE, pings.ping(Ping::opaque())).await {
            Ok(Ok(_)) => {}
            // The connection is closing.
            Ok(Err(_)) => return pending().await,
            Err(_) => return,
        }
    }
}
