//! Taking connections in, never more than are allowed, until there are to be no more.

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

use super::connections::Reception;
use crate::shutdown::StageWaiter;

/// How long a shutdown waits for requests under way.
const LONGEST_FINISH: Duration = Duration::from_secs(30);

/// How long a connection that has not asked yet may take to ask.
const MOMENT: Duration = Duration::from_millis(300);

/// How long to leave a machine alone that has no file descriptor to spare.
const REST: Duration = Duration::from_millis(100);

/// How much a listener takes on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) connections: usize,
    pub(super) drain: Duration,
}

/// Serves connections until asked to stop; then for a moment more, so that nobody who has not yet
/// heard of it is turned away; then finishes those that are open.
pub(super) async fn accept(
    listener: TcpListener,
    reception: Reception,
    limits: Limits,
    mut stop: StageWaiter,
    mut hurry: StageWaiter,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    {
        let mut accepting = pin!(take_in(&listener, &reception, places));
        tokio::select! {
            () = stop.wait() => {}
            never = &mut accepting => match never {},
        }
        reception.dispatch().app.set_not_ready();
        info!("draining");
        let drained = timeout(limits.drain, accepting);
        tokio::select! {
            _ = drained => {}
            () = hurry.wait() => {}
        }
    }
    // Who is connected already, or waits to be accepted, has been promised an answer: each gets a moment
    // to ask, and hears that this connection closes.
    for (stream, peer) in close(listener) {
        reception.admit(stream, peer, None);
    }
    sleep(MOMENT.min(limits.drain)).await;
    if timeout(LONGEST_FINISH, reception.close()).await.is_err() {
        warn!("some requests did not end in time and were cut off");
    }
}

async fn take_in(
    listener: &TcpListener,
    reception: &Reception,
    places: Arc<Semaphore>,
) -> Infallible {
    loop {
        let (stream, peer, place) = next(listener, &places).await;
        reception.admit(stream, peer, place);
    }
}

/// Closes a listener; those who had connected by then. The system turns away who comes between the last look
/// and the end, so it is looked past the runtime, which may not have heard of the latest, and nothing is done
/// in between.
fn close(listener: TcpListener) -> Vec<(TcpStream, SocketAddr)> {
    let mut waiting = Vec::new();
    let Ok(listener) = listener.into_std() else { return Vec::new() };
    loop {
        match listener.accept() {
            Ok(one) => waiting.push(one),
            Err(error) if is_of_one(&error) => {}
            Err(_) => break,
        }
    }
    drop(listener);
    let adopt = |(stream, peer): (net::TcpStream, _)| {
        stream.set_nonblocking(true).ok()?;
        let _ = stream.set_nodelay(true);
        Some((TcpStream::from_std(stream).ok()?, peer))
    };
    waiting.into_iter().filter_map(adopt).collect()
}

/// Whether an error is of the connection that was to be accepted, and not of accepting.
fn is_of_one(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted)
}

/// The next connection, once there is a place for it.
async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>) {
    let place = Arc::clone(places).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Small answers must not wait for a full packet. Where that cannot be set it is slow,
                // not wrong.
                let _ = stream.set_nodelay(true);
                return (stream, peer, place);
            }
            // Mostly no descriptor is free. The connection waits in the queue meanwhile.
            Err(error) => {
                warn!(%error, "cannot accept a connection now");
                sleep(REST).await;
            }
        }
    }
}
