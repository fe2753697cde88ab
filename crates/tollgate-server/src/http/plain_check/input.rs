//! The read buffer of a connection: bounded, and small unless a client sends many requests at once.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::listener::DrainWatch;

/// Capacity of the first read in bytes.
const INITIAL_CAPACITY: usize = 4 * 1024;
/// Maximum capacity in bytes, and maximum length of a plain check.
pub(super) const MAX_INPUT: usize = 16 * 1024;

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// Some bytes arrived.
    Bytes,
    /// The client has closed the connection.
    End,
    /// The server drains its connections.
    Drained,
}

/// Received bytes whose requests are not answered yet.
#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    /// Start of the unread bytes.
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
        if self.is_empty() {
            self.bytes.clear();
            self.start = 0;
        }
    }

    /// Returns the unread bytes.
    pub(super) fn into_unread(mut self) -> Vec<u8> {
        self.bytes.drain(..self.start);
        self.bytes
    }

    /// Reads once, or waits for the drain. The caller has left room, because a request of [`MAX_INPUT`] bytes is complete
    /// or is no plain check.
    pub(super) async fn read(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        drain: &mut DrainWatch,
    ) -> io::Result<Read> {
        self.make_room();
        let room = self.bytes.capacity() - self.bytes.len();
        let mut reading = pin!(stream.read_buf(&mut self.bytes));
        let read = poll_fn(|context| {
            if let Poll::Ready(read) = reading.as_mut().poll(context) {
                return Poll::Ready(read.map(Some));
            }
            drain.poll_requested(context).map(|()| Ok(None))
        });
        let read = read.await?;
        self.was_filled = read == Some(room);
        Ok(match read {
            Some(0) => Read::End,
            Some(_) => Read::Bytes,
            None => Read::Drained,
        })
    }

    /// Moves the unread bytes to the front, and grows the buffer if necessary.
    fn make_room(&mut self) {
        self.bytes.drain(..self.start);
        self.start = 0;
        let (length, capacity) = (self.bytes.len(), self.bytes.capacity());
        if length < capacity && !self.was_filled {
            return;
        }
        let wanted = capacity.saturating_mul(2).clamp(INITIAL_CAPACITY, MAX_INPUT);
        self.bytes.reserve_exact(wanted.saturating_sub(length));
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;
    use crate::listener::Drain;

    #[tokio::test]
    async fn grows_to_the_maximum_and_keeps_incomplete_bytes() {
        let sender = watch::Sender::new(());
        let mut drain = DrainWatch::new(Drain::new(sender.subscribe()));
        let (mut input, bytes) = (Input::default(), vec![7; 100_000]);
        let mut stream = &bytes[..];
        while input.unread().len() < MAX_INPUT {
            assert_eq!(input.read(&mut stream, &mut drain).await.unwrap(), Read::Bytes);
        }
        assert_eq!((input.unread().len(), input.bytes.capacity()), (MAX_INPUT, MAX_INPUT));
        input.advance(MAX_INPUT - 1);
        let mut more = &b"g"[..];
        assert_eq!(input.read(&mut more, &mut drain).await.unwrap(), Read::Bytes);
        assert_eq!(input.bytes.capacity(), MAX_INPUT);
        assert_eq!(input.read(&mut more, &mut drain).await.unwrap(), Read::End);
        assert_eq!(input.into_unread(), b"\x07g");
    }
}
