//! Patience with a client, and its end: a head that does not come whole, a connection that nobody uses,
//! an answer that nobody reads.
//!
//! A timer for every request would cost more than many a decision. A connection has one, which looks
//! now and then whether anything has happened since it last looked.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// How often a connection is looked at.
const LOOK: Duration = Duration::from_millis(2500);

/// After so many looks at one unfinished head: 7.5 to 10 seconds.
const HEAD_LOOKS: u32 = 3;

/// After so many looks at a connection on which nothing comes: about two minutes.
const IDLE_LOOKS: u32 = 48;

/// How long a write may make no progress.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);

/// How far the requests of a connection have come, told by who answers them.
#[derive(Debug, Default)]
pub(super) struct Progress {
    requests: AtomicU32,
    is_answering: AtomicBool,
}

impl Progress {
    /// A head has come whole.
    pub(super) fn begin(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.is_answering.store(true, Ordering::Relaxed);
    }

    /// It is answered.
    pub(super) fn end(&self) {
        self.is_answering.store(false, Ordering::Relaxed);
    }
}

/// A stream whose reads and writes end with an error when the other side takes too long.
#[derive(Debug)]
pub(super) struct Patient<T> {
    stream: T,
    progress: Arc<Progress>,
    look: Pin<Box<Sleep>>,
    is_armed: bool,
    /// The request at which the other side was last seen to be busy.
    seen: u32,
    has_begun_head: bool,
    looks: u32,
    writing: Option<Pin<Box<Sleep>>>,
}

impl<T> Patient<T> {
    pub(super) fn new(stream: T, progress: Arc<Progress>) -> Self {
        Self {
            stream,
            progress,
            look: Box::pin(sleep(LOOK)),
            is_armed: false,
            seen: 0,
            has_begun_head: false,
            looks: 0,
            writing: None,
        }
    }

    /// Bytes have come: unless a request is being answered, they begin a head.
    fn note_bytes(&mut self) {
        let requests = self.progress.requests.load(Ordering::Relaxed);
        if self.seen != requests {
            (self.seen, self.has_begun_head, self.looks) = (requests, false, 0);
        }
        if !self.has_begun_head && !self.progress.is_answering.load(Ordering::Relaxed) {
            (self.has_begun_head, self.looks) = (true, 0);
        }
    }

    /// Whether the patience for what is being waited for has ended.
    fn has_ended(&mut self, context: &mut Context<'_>) -> bool {
        // Polled once, the timer wakes this task; until then asking it costs nothing.
        if !self.is_armed {
            self.is_armed = self.look.as_mut().poll(context).is_pending();
        }
        if !self.look.is_elapsed() {
            return false;
        }
        self.look.as_mut().reset(Instant::now() + LOOK);
        self.is_armed = self.look.as_mut().poll(context).is_pending();
        let requests = self.progress.requests.load(Ordering::Relaxed);
        if self.seen != requests || self.progress.is_answering.load(Ordering::Relaxed) {
            (self.seen, self.has_begun_head, self.looks) = (requests, false, 0);
            return false;
        }
        self.looks += 1;
        self.looks > if self.has_begun_head { HEAD_LOOKS } else { IDLE_LOOKS }
    }

    /// Passes on what a write came to, and keeps the time while it comes to nothing.
    fn watch_write<R>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.writing = None;
            return written;
        }
        let waiting = self.writing.get_or_insert_with(|| Box::pin(sleep(WRITE_PATIENCE)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Patient<T> {
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
        if self.has_ended(context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Patient<T> {
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
