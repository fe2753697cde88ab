//! The streams of an HTTP/2 connection: each is one call.
//!
//! Most calls complete at once, because the message has arrived with its head and the decision needs no I/O. Such a call
//! runs inside the task of the connection, and the responses of all calls that arrived together are one write. A call that
//! has to wait continues in a task of its own.

use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::{Connection as Http2, SendResponse};
use h2::{PingPong, Reason, RecvStream};
use hyper::Request;
use tokio::time::Instant;

use super::calls::Calls;
use super::early_resets::EarlyResets;
use super::wake_gate::WakeGate;
use crate::listener::{Connection, Stream};

/// Capacity for opened streams that a connection keeps.
const MAX_KEPT_STREAMS: usize = 16;

/// What all calls of a connection share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) calls: Arc<Calls>,
    pub(super) connection: Connection,
    pub(super) resets: EarlyResets,
}

/// A stream that the client has opened.
type Opened = (Request<RecvStream>, SendResponse<Bytes>);

/// The streams of a connection.
pub(super) struct Streams<S> {
    http: Http2<S, Bytes>,
    shared: Arc<Shared>,
    /// Streams whose calls have not begun; empty between two polls.
    opened: Vec<Opened>,
    gate: WakeGate,
}

impl<S: Stream> Streams<S> {
    pub(super) fn new(http: Http2<S, Bytes>, shared: Arc<Shared>) -> Self {
        Self { http, shared, opened: Vec::new(), gate: WakeGate::new() }
    }

    /// Returns the means to send a PING; only once.
    pub(super) fn ping_pong(&mut self) -> Option<PingPong> {
        self.http.ping_pong()
    }

    /// Lets the client open no further streams. [`serve`](Self::serve) then ends with the last one.
    pub(super) fn finish(&mut self) {
        self.http.graceful_shutdown();
    }

    /// Ends all streams. [`serve`](Self::serve) then closes the connection.
    pub(super) fn abort(&mut self) {
        self.http.abrupt_shutdown(Reason::NO_ERROR);
    }

    /// Serves all streams until the connection is closed.
    pub(super) async fn serve(&mut self) {
        poll_fn(|context| self.poll(context)).await;
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            // Also writes the responses of the previous calls.
            if self.poll_opened(context).is_ready() {
                return Poll::Ready(());
            }
            if self.opened.is_empty() {
                return Poll::Pending;
            }
            self.gate.close();
            self.begin_calls(context);
        }
    }

    /// Collects the streams that the client has opened. Ready when the connection is closed.
    fn poll_opened(&mut self, context: &Context<'_>) -> Poll<()> {
        let mut context = self.gate.open(context);
        loop {
            match self.http.poll_accept(&mut context) {
                Poll::Ready(Some(Ok(stream))) => self.opened.push(stream),
                // Errors of a connection are caused by its client and are not logged.
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Runs the calls of the opened streams as far as possible. Those that have to wait continue in their own tasks.
    fn begin_calls(&mut self, context: &mut Context<'_>) {
        let begun = Instant::now();
        for (request, response) in self.opened.drain(..) {
            let shared = Arc::clone(&self.shared);
            let mut call = Box::pin(serve_call(shared, request, response, begun));
            // As in a task of its own, a panic ends only its stream: the connection may carry all calls of a proxy.
            let poll = AssertUnwindSafe(|| call.as_mut().poll(context));
            if matches!(catch_unwind(poll), Ok(Poll::Pending)) {
                tokio::spawn(call);
            }
        }
        // A burst of calls keeps no memory for the life of its connection.
        self.opened.shrink_to(MAX_KEPT_STREAMS);
    }
}

impl<S> fmt::Debug for Streams<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").field("opened", &self.opened.len()).finish_non_exhaustive()
    }
}

/// Answers a call, unless the client resets its stream first.
async fn serve_call(
    shared: Arc<Shared>,
    request: Request<RecvStream>,
    mut stream: SendResponse<Bytes>,
    begun: Instant,
) {
    let Shared { calls, connection, resets } = &*shared;
    let _in_progress = connection.begin_request();
    let open = resets.open(begun);
    let response = {
        let mut call = pin!(calls.respond(request, begun, connection));
        let response = poll_fn(|context| match call.as_mut().poll(context) {
            Poll::Ready(response) => Poll::Ready(Some(response)),
            Poll::Pending => stream.poll_reset(context).map(|_| None),
        });
        response.await
    };
    let Some(response) = response else { return };
    // The error of a body that the client reset is not sent.
    if !response.is_aborted() {
        open.complete();
    }
    let _ = response.send(&mut stream).await;
}
