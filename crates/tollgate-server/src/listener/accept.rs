//! Accept loop: admits connections up to the maximum until shutdown, then drains them.

use std::convert::Infallible;
use std::io;
use std::net::{self, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::connections::Connections;
use super::{ListenerContext, Protocol};
use crate::shutdown::StageWaiter;

/// Maximum time that a shutdown waits for requests in progress.
const FINISH_TIMEOUT: Duration = Duration::from_secs(30);

/// Time that a connection accepted during shutdown has to send its first request.
const FIRST_REQUEST_GRACE: Duration = Duration::from_millis(300);

/// Delay after a failed `accept`, usually because no file descriptor is free.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Serves connections until shutdown is requested and for the drain time after that, so that clients that do not know
/// yet are still served. Then finishes the open connections.
pub(super) async fn accept<P: Protocol>(
    listener: TcpListener,
    connections: Connections<P>,
    ListenerContext { limits, readiness, .. }: ListenerContext,
    (mut stop, mut skip_drain): (StageWaiter, StageWaiter),
) {
    let capacity = Arc::new(Semaphore::new(limits.connections));
    {
        let mut accepting = pin!(accept_loop(&listener, &connections, capacity));
        tokio::select! {
            () = stop.wait() => {}
            never = &mut accepting => match never {},
        }
        readiness.set_not_ready();
        let address = listener.local_addr().ok().map(|address| address.to_string());
        info!(address, "draining");
        let drained = timeout(limits.drain, accepting);
        tokio::select! {
            _ = drained => {}
            () = skip_drain.wait() => {}
        }
    }
    // Connections that are open or in the accept queue still get a response: each has a short time to send a request,
    // and the response closes the connection.
    for (stream, peer) in close(listener) {
        connections.admit(stream, peer, None);
    }
    sleep(FIRST_REQUEST_GRACE.min(limits.drain)).await;
    if timeout(FINISH_TIMEOUT, connections.close()).await.is_err() {
        warn!("shutdown timed out; aborting the requests in progress");
    }
}

async fn accept_loop<P: Protocol>(
    listener: &TcpListener,
    connections: &Connections<P>,
    capacity: Arc<Semaphore>,
) -> Infallible {
    loop {
        let (stream, peer, permit) = next(listener, &capacity).await;
        connections.admit(stream, peer, permit);
    }
}

/// Closes a listener and returns the connections in its accept queue. The kernel resets a connection that arrives
/// between the last `accept` and the close. To keep that gap short, this bypasses the runtime, which may not have
/// polled the newest connections, and does no other work in between.
fn close(listener: TcpListener) -> Vec<(TcpStream, SocketAddr)> {
    let mut queued = Vec::new();
    let Ok(listener) = listener.into_std() else { return Vec::new() };
    loop {
        match listener.accept() {
            Ok(connection) => queued.push(connection),
            Err(error) if is_connection_error(&error) => {}
            Err(_) => break,
        }
    }
    drop(listener);
    let adopt = |(stream, peer): (net::TcpStream, _)| {
        stream.set_nonblocking(true).ok()?;
        let _ = stream.set_nodelay(true);
        Some((TcpStream::from_std(stream).ok()?, peer))
    };
    queued.into_iter().filter_map(adopt).collect()
}

/// Returns whether an `accept` error concerns one connection and not the listener.
fn is_connection_error(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted)
}

/// Waits for capacity and accepts the next connection.
async fn next(
    listener: &TcpListener,
    capacity: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>) {
    let permit = Arc::clone(capacity).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Small responses must not wait for a full packet. A failure makes them slow, not wrong.
                let _ = stream.set_nodelay(true);
                return (stream, peer, permit);
            }
            // Usually no file descriptor is free. The connection stays in the accept queue.
            Err(error) => {
                warn!(%error, "cannot accept a connection; retrying");
                sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}
