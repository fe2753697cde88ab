//! Connection timeouts: an incomplete request head, an idle connection, a response that the client does not read.
//!
//! A timer per request would cost more than many decisions. Each connection has one timer, which checks periodically
//! whether there was progress since the previous check.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Interval between two checks of a connection.
const CHECK_INTERVAL: Duration = Duration::from_millis(2500);

/// Maximum number of checks during one incomplete head: 7.5 to 10 seconds.
const MAX_HEAD_CHECKS: u32 = 3;

/// Maximum number of checks of a connection without input: about two minutes.
const MAX_IDLE_CHECKS: u32 = 48;

/// Maximum time that a write may make no progress.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Progress of the requests of a connection, updated by the request handler.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    requests: AtomicU32,
    /// Requests without a complete response.
    in_progress: AtomicU32,
    /// Whether a part of the next request has arrived together with the last one.
    has_partial: AtomicBool,
    /// Whether bytes outside of requests are normal.
    is_multiplexed: AtomicBool,
}

impl Progress {
    /// Records a complete request head.
    pub(crate) fn begin(&self) {
        self.has_partial.store(false, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.in_progress.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that the response is complete.
    pub(crate) fn end(&self) {
        self.in_progress.fetch_sub(1, Ordering::Relaxed);
    }

    /// Records that the received bytes end with a part of the next request.
    pub(super) fn set_partial(&self) {
        self.has_partial.store(true, Ordering::Relaxed);
    }

    /// Returns the number of requests so far, modulo 2^32.
    pub(crate) fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Returns whether a response is incomplete.
    pub(crate) fn is_responding(&self) -> bool {
        self.in_progress.load(Ordering::Relaxed) > 0
    }

    pub(super) fn set_multiplexed(&self) {
        self.is_multiplexed.store(true, Ordering::Relaxed);
    }

    /// Returns whether bytes received now can be the begin of a request head.
    fn expects_head(&self) -> bool {
        let is_first = self.requests() == 0;
        !self.is_responding() && (is_first || !self.is_multiplexed.load(Ordering::Relaxed))
    }
}

/// A stream whose reads and writes fail when the client takes too long.
#[derive(Debug)]
pub(super) struct TimedStream<T> {
    stream: T,
    progress: Arc<Progress>,
    timer: Pin<Box<Sleep>>,
    is_armed: bool,
    /// The request count at the last observed progress.
    last_requests: u32,
    has_begun_head: bool,
    /// Checks without progress so far.
    checks: u32,
    write_timer: Option<Pin<Box<Sleep>>>,
}

impl<T> TimedStream<T> {
    pub(super) fn new(stream: T, progress: Arc<Progress>) -> Self {
        Self {
            stream,
            progress,
            timer: Box::pin(sleep(CHECK_INTERVAL)),
            is_armed: false,
            last_requests: 0,
            has_begun_head: false,
            checks: 0,
            write_timer: None,
        }
    }

    /// Records received bytes. They begin a request head unless a response is in progress.
    fn note_bytes(&mut self) {
        let requests = self.progress.requests();
        if self.last_requests != requests {
            self.note_requests(requests);
        }
        if !self.has_begun_head && self.progress.expects_head() {
            (self.has_begun_head, self.checks) = (true, 0);
        }
    }

    /// Records progress: this number of requests so far.
    fn note_requests(&mut self, requests: u32) {
        self.has_begun_head = self.progress.has_partial.load(Ordering::Relaxed);
        (self.last_requests, self.checks) = (requests, 0);
    }

    /// Returns whether the client has exceeded the timeout for the head or for an idle connection.
    fn has_timed_out(&mut self, context: &mut Context<'_>) -> bool {
        // Once polled, the timer wakes this task. Until it fires, the check below costs nothing.
        if !self.is_armed {
            self.is_armed = self.timer.as_mut().poll(context).is_pending();
        }
        if !self.timer.is_elapsed() {
            return false;
        }
        self.timer.as_mut().reset(Instant::now() + CHECK_INTERVAL);
        self.is_armed = self.timer.as_mut().poll(context).is_pending();
        let requests = self.progress.requests();
        if self.last_requests != requests || self.progress.is_responding() {
            self.note_requests(requests);
            // The next request may have begun since the last check.
            self.checks = u32::from(self.has_begun_head);
            return false;
        }
        self.checks += 1;
        self.checks > if self.has_begun_head { MAX_HEAD_CHECKS } else { MAX_IDLE_CHECKS }
    }

    /// Returns the result of a write, or a timeout error if writes have been pending for too long.
    fn watch_write<R>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.write_timer = None;
            return written;
        }
        let timer = self.write_timer.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        match timer.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for TimedStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            self.note_bytes();
            return read;
        }
        if self.has_timed_out(context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for TimedStream<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch_write(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch_write(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watch_write(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
