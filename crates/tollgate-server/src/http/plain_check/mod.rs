//! Plain checks on a connection: `POST /check` on a node whose store is in memory.
//!
//! hyper builds a header map, a URI and a body stream for each request, which costs more than the decision. Plain checks
//! need none of them. The responses to all requests that arrived together are sent in one write. At the first request
//! that is not a plain check, the connection continues with hyper, which receives the bytes of that request.

mod answers;
mod conversation;
mod date;
mod input;
mod request;
#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::api::Service;
use crate::listener::{Connection, DrainWatch, Stream};
use conversation::{Conversation, Pause};
use input::Read;

/// Maximum capacity in bytes of the buffer for responses between two reads.
const MAX_KEPT_ANSWERS: usize = 16 * 1024;
/// Maximum time to wait for the body of a request before hyper waits for it.
const BODY_WAIT: Duration = Duration::from_secs(1);

/// How the plain checks of a connection end.
#[derive(Debug)]
enum End {
    /// The connection continues with hyper.
    HandOver,
    /// The client sends nothing more, or the server drains an idle connection.
    Close,
}

/// Returns whether plain checks of this service are decided without hyper. Decisions in Redis have to wait, and spans need
/// further headers.
fn is_supported(service: &Service) -> bool {
    !service.has_shared_store() && !service.traces().is_enabled()
}

/// Serves the plain checks at the begin of a connection. Returns the stream and the unread bytes for hyper; `None` if the
/// connection is closed.
pub(super) async fn serve<S: Stream>(
    service: &Service,
    mut stream: S,
    connection: &Connection,
) -> Option<(S, Vec<u8>)> {
    if !is_supported(service) {
        return Some((stream, Vec::new()));
    }
    let mut conversation = Conversation::new(service, connection);
    // Errors of a connection are caused by its client and are not logged.
    match converse(&mut stream, &mut conversation, connection).await.ok()? {
        End::HandOver => Some((stream, conversation.into_unread())),
        End::Close => {
            // Ends a TLS stream properly.
            let _ = stream.shutdown().await;
            None
        }
    }
}

async fn converse<S: Stream>(
    stream: &mut S,
    conversation: &mut Conversation<'_>,
    connection: &Connection,
) -> io::Result<End> {
    let mut drain = DrainWatch::new(connection.drain());
    loop {
        let pause = conversation.answer().await;
        send(stream, conversation).await?;
        let read = match pause {
            Pause::NeedsSending => continue,
            Pause::HandOver => return Ok(End::HandOver),
            Pause::NeedsBody => {
                // Boxed, because most bodies arrive with their heads.
                let reading = conversation.input.read(stream, &mut drain);
                match Box::pin(timeout(BODY_WAIT, reading)).await {
                    Ok(read) => read?,
                    Err(_) => return Ok(End::HandOver),
                }
            }
            Pause::NeedsHead => conversation.input.read(stream, &mut drain).await?,
        };
        match read {
            Read::Bytes => {}
            Read::Drained | Read::End if conversation.input.is_empty() => return Ok(End::Close),
            // hyper finishes a request that has begun, or reports that it is incomplete.
            Read::Drained | Read::End => return Ok(End::HandOver),
        }
    }
}

/// Sends the responses in one write.
async fn send<S: Stream>(stream: &mut S, conversation: &mut Conversation<'_>) -> io::Result<()> {
    let answers = &mut conversation.answers;
    if answers.as_bytes().is_empty() {
        return Ok(());
    }
    stream.write_all(answers.as_bytes()).await?;
    stream.flush().await?;
    answers.clear(MAX_KEPT_ANSWERS);
    Ok(())
}
