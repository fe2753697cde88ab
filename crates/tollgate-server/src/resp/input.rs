//! The read buffer of a connection: bounded, and small while the connection is idle.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;

use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Capacity of the first read in bytes.
const INITIAL_CAPACITY: usize = 4 * 1024;
/// Maximum capacity in bytes that an empty buffer keeps.
const MAX_KEPT_CAPACITY: usize = 16 * 1024;

/// Received bytes that are not decoded yet.
#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    /// Start of the bytes that are not decoded.
    start: usize,
    /// Whether the last read filled the buffer, so that a larger one saves reads.
    was_filled: bool,
}

impl Input {
    pub(super) fn unread(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unread().is_empty()
    }

    /// Forgets the first `length` bytes.
    pub(super) fn advance(&mut self, length: usize) {
        self.start = self.start.saturating_add(length).min(self.bytes.len());
    }

    /// Reads once, up to `max` unread bytes in all. Returns false at the end of the stream, and if there is no room.
    pub(super) async fn read(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        max: usize,
    ) -> io::Result<bool> {
        self.make_room(max);
        let room = self.bytes.capacity().min(max).saturating_sub(self.bytes.len());
        let read = stream.read_buf(&mut (&mut self.bytes).limit(room)).await?;
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

    /// Moves the unread bytes to the front, and grows or shrinks the buffer if necessary.
    fn make_room(&mut self, max: usize) {
        self.bytes.drain(..self.start);
        self.start = 0;
        let (length, capacity) = (self.bytes.len(), self.bytes.capacity());
        if length == 0 && !self.was_filled && capacity > MAX_KEPT_CAPACITY {
            self.bytes = Vec::new();
        } else if length < capacity && !self.was_filled {
            return;
        }
        let wanted = self.bytes.capacity().saturating_mul(2).max(INITIAL_CAPACITY).min(max);
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
        input.advance(65536);
        assert!(input.is_empty());
        let mut stream = &b"x"[..];
        assert!(input.read(&mut stream, 65536).await.unwrap());
        input.advance(1);
        let mut stream = &b"y"[..];
        assert!(input.read(&mut stream, 65536).await.unwrap());
        assert_eq!((input.unread(), input.bytes.capacity()), (&b"y"[..], INITIAL_CAPACITY));
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
