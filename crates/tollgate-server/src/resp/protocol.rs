//! RESP on a connection: reads commands, sends the replies of each read in one write, drains and closes.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::yield_now;
use tokio::time::{timeout, timeout_at};

use super::conversation::{Conversation, Pause};
use super::session::Session;
use crate::api::Service;
use crate::listener::{Connection, Protocol, Stream};

/// Maximum capacity in bytes of the reply buffer between two reads.
const MAX_KEPT_REPLIES: usize = 16 * 1024;
/// Maximum time to wait until a client has read the last reply and closes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of bytes to discard from a client after the last reply.
const MAX_DISCARDED: u64 = 256 * 1024;

/// The RESP front end.
#[derive(Debug)]
pub(crate) struct Resp {
    service: Arc<Service>,
    started: Instant,
    connections: AtomicU64,
}

impl Resp {
    pub(crate) fn new(service: Arc<Service>) -> Self {
        Self { service, started: Instant::now(), connections: AtomicU64::default() }
    }
}

impl Protocol for Resp {
    fn scheme(&self) -> &'static str {
        "resp"
    }

    fn tls_scheme(&self) -> &'static str {
        "resps"
    }

    async fn serve<S: Stream>(self: Arc<Self>, mut stream: S, connection: Connection) {
        let id = self.connections.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let session = Session::new(&self.service, id, connection.peer());
        let conversation = Conversation::new(&self.service, self.started, session);
        // Errors of a connection are caused by its client and are not logged.
        let ended = converse(&mut stream, conversation, &connection).await;
        if matches!(ended, Ok(End::ByServer)) {
            discard_rest(&mut stream).await;
        } else {
            // Ends a TLS stream properly.
            let _ = stream.shutdown().await;
        }
    }
}

/// Who ends a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client sends nothing more.
    ByClient,
    /// The server closes it while the client may still send.
    ByServer,
}

async fn converse<S: Stream>(
    stream: &mut S,
    mut conversation: Conversation<'_>,
    connection: &Connection,
) -> io::Result<End> {
    let (drain, mut drain_signal) = (connection.drain(), connection.drain());
    let mut drained = pin!(drain_signal.requested());
    loop {
        let pause = conversation.answer(connection).await;
        // A client that does not read its replies keeps no memory for commands that are answered.
        conversation.input.shrink();
        send(stream, &mut conversation).await?;
        match pause {
            Pause::NeedsSending => continue,
            Pause::Ends => return Ok(End::ByServer),
            Pause::NeedsInput => {}
        }
        // Between two commands a drain ends the connection. A command that has begun is answered first.
        let is_idle = conversation.input.is_empty();
        if is_idle && drain.is_requested() {
            return Ok(End::ByServer);
        }
        if !is_idle {
            connection.begin_next_request();
        }
        let max = conversation.max_input();
        tokio::select! {
            biased;
            is_open = conversation.input.read(stream, max) => if !is_open? { return Ok(End::ByClient) },
            () = drained.as_mut(), if is_idle => return Ok(End::ByServer),
        }
    }
}

/// Sends the replies in one write. A client that sends nothing more may be gone, so its permits are withheld.
async fn send<S: Stream>(stream: &mut S, conversation: &mut Conversation<'_>) -> io::Result<()> {
    let max = conversation.max_input();
    if conversation.pipeline.has_undelivered() {
        // The end of the connection may have arrived together with the reply of Redis. The runtime notices it meanwhile.
        yield_now().await;
        if conversation.input.is_at_end(stream, max).await {
            conversation.withhold_permits();
        }
    }
    if conversation.replies.len() == 0 {
        return Ok(());
    }
    let writing = write(stream, conversation.replies.as_bytes());
    match conversation.input.reply_deadline() {
        Some(deadline) => Box::pin(timeout_at(deadline, writing)).await??,
        None => writing.await?,
    }
    conversation.replies.clear(MAX_KEPT_REPLIES);
    conversation.pipeline.set_delivered();
    Ok(())
}

async fn write<S: Stream>(stream: &mut S, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

/// Closes the connection so that the client can still read the last reply. Closing with unread input would send a reset
/// instead, which discards the reply.
async fn discard_rest<S: Stream>(stream: &mut S) {
    if stream.shutdown().await.is_ok() {
        let mut rest = stream.take(MAX_DISCARDED);
        let mut sink = tokio::io::sink();
        let _ = timeout(CLOSE_TIMEOUT, tokio::io::copy(&mut rest, &mut sink)).await;
    }
}
