//! The read buffer of a connection: bounded, and small while the connection is idle.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout};

use crate::listener::{IncompleteRequest, TooSlow};

/// Capacity of the first read in bytes.
const INITIAL_CAPACITY: usize = 4 * 1024;
/// Maximum capacity in bytes without a reservation. Only for a longer command the buffer grows beyond it.
const MAX_UNRESERVED: usize = 16 * 1024;
/// Maximum time that a long command waits for memory, and that replies may take while it holds memory.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(30);

/// Reserved memory, and the time until which replies must be sent.
#[derive(Debug)]
struct Reserved {
    memory: IncompleteRequest,
    deadline: Instant,
}

fn too_slow(TooSlow: TooSlow) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "other requests need the memory of this one")
}

/// Received bytes that are not decoded yet.
#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    /// Start of the bytes that are not decoded.
    start: usize,
    /// Whether the last read filled the buffer, so that a larger one saves reads.
    was_filled: bool,
    /// The memory of a buffer that is larger than [`MAX_UNRESERVED`].
    reserved: Option<Reserved>,
}

impl Input {
    pub(super) fn unread(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unread().is_empty()
    }

    /// Returns when the replies must be sent, if the input holds memory that others wait for.
    pub(super) fn reply_deadline(&self) -> Option<Instant> {
        self.reserved.as_ref().map(|reserved| reserved.deadline)
    }

    /// Forgets the first `length` bytes.
    pub(super) fn advance(&mut self, length: usize) {
        self.start = self.start.saturating_add(length).min(self.bytes.len());
    }

    /// Reads once, up to `max` unread bytes in all. Waits for memory if an incomplete command is long. Returns false at the end of the stream, and if there is no room.
    pub(super) async fn read(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        max: usize,
    ) -> io::Result<bool> {
        self.shrink();
        if self.bytes.len() >= MAX_UNRESERVED && self.reserved.is_none() {
            // Boxed, because it is rare.
            let charging = Box::pin(async {
                let mut memory = IncompleteRequest::new();
                memory.charge(max).await.map_err(too_slow)?;
                Ok::<_, io::Error>(memory)
            });
            let memory = timeout(MEMORY_TIMEOUT, charging).await??;
            self.reserved = Some(Reserved { memory, deadline: Instant::now() });
        }
        self.make_room(max);
        let room = self.bytes.capacity().min(max).saturating_sub(self.bytes.len());
        let mut buffer = (&mut self.bytes).limit(room);
        let reading = stream.read_buf(&mut buffer);
        let read = match &mut self.reserved {
            None => reading.await?,
            Some(reserved) => {
                let read = tokio::select! {
                    biased;
                    read = reading => read?,
                    dropped = reserved.memory.dropped() => return Err(too_slow(dropped)),
                };
                reserved.deadline = Instant::now() + MEMORY_TIMEOUT;
                read
            }
        };
        self.was_filled = read == room;
        Ok(read > 0)
    }

    /// Returns whether the client has closed the connection. Keeps bytes that it has sent before.
    pub(super) async fn is_at_end(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        max: usize,
    ) -> bool {
        if self.unread().len() >= max {
            return false;
        }
        let mut read = pin!(self.read(stream, max));
        let polled = poll_fn(|context| Poll::Ready(read.as_mut().poll(context))).await;
        match polled {
            Poll::Pending | Poll::Ready(Ok(true)) => false,
            Poll::Ready(Ok(false) | Err(_)) => true,
        }
    }

    /// Moves the unread bytes to the front, and returns the memory that was reserved for a long command before them.
    pub(super) fn shrink(&mut self) {
        self.bytes.drain(..self.start);
        self.start = 0;
        if self.bytes.len() < MAX_UNRESERVED && self.reserved.is_some() {
            self.bytes.shrink_to(MAX_UNRESERVED);
            self.reserved = None;
        }
    }

    /// Grows the buffer if necessary.
    fn make_room(&mut self, max: usize) {
        let (length, capacity) = (self.bytes.len(), self.bytes.capacity());
        if length < capacity && !self.was_filled {
            return;
        }
        let max = if self.reserved.is_some() { max } else { max.min(MAX_UNRESERVED) };
        let wanted = capacity.saturating_mul(2).max(INITIAL_CAPACITY).min(max);
        self.bytes.reserve_exact(wanted.saturating_sub(length));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_all(input: &mut Input, mut stream: &[u8], max: usize) {
        while input.read(&mut stream, max).await.unwrap() {}
    }

    #[tokio::test]
    async fn grows_to_the_maximum_and_not_beyond() {
        let (mut input, bytes) = (Input::default(), vec![7; 200_000]);
        read_all(&mut input, &bytes, 1024).await;
        assert_eq!((input.unread().len(), input.bytes.capacity()), (1024, 1024));
        read_all(&mut input, &bytes, 65536).await;
        assert_eq!((input.unread().len(), input.bytes.capacity()), (65536, 65536));
        assert!(input.reserved.is_some());
        input.advance(65536);
        assert!(input.is_empty());
        input.shrink();
        assert_eq!((input.bytes.capacity(), input.reserved.is_none()), (MAX_UNRESERVED, true));
        // Short commands need no more than that, however many there are.
        let mut stream = &bytes[..];
        while input.read(&mut stream, 65536).await.unwrap() {
            input.advance(input.unread().len() - 1);
        }
        assert_eq!((input.bytes.capacity(), input.reserved.is_none()), (MAX_UNRESERVED, true));
    }

    #[tokio::test]
    async fn keeps_incomplete_bytes() {
        let mut input = Input::default();
        read_all(&mut input, b"abc", 1024).await;
        input.advance(2);
        read_all(&mut input, b"def", 1024).await;
        assert_eq!(input.unread(), b"cdef");
        let mut ended = &b""[..];
        assert!(input.is_at_end(&mut ended, 1024).await);
        let mut more = &b"g"[..];
        assert!(!input.is_at_end(&mut more, 1024).await);
        assert_eq!(input.unread(), b"cdefg");
    }
}
