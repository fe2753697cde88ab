//! Faults between a client and its server.

use std::ops::Range;
use std::time::Duration;

use super::hub::Current;
use crate::random::Random;

/// A fault that a proxy applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    Pass,
    /// Cuts each connection after exactly a number of bytes in one direction. The number is drawn per connection when
    /// this fault first applies to it; with 0 the first byte is not forwarded.
    CutAfter {
        /// The direction in which bytes are counted.
        towards: Direction,
        /// The range of the number of bytes.
        bytes: Range<u64>,
    },
    /// As `CutAfter`, but only for connections that are already open, so that clients can reconnect immediately.
    CutOpen {
        /// The direction in which bytes are counted.
        towards: Direction,
        /// The range of the number of bytes.
        bytes: Range<u64>,
    },
    /// Delays each reply. Requests are not delayed: the server executes commands on which a client times out.
    Delay(Duration),
    /// Forwards at most this many bytes of requests per second on each connection: a server that needs a fixed time for
    /// each decision, and cannot keep up.
    Throttle(u32),
    /// Accepts connections and drops all bytes. Requests never reach the server; with [`Server::hang`] they do, late.
    /// A connection that lost bytes is cut when this fault ends, because TCP has no gaps.
    ///
    /// [`Server::hang`]: crate::server::Server::hang
    Blackhole,
    /// Replies to each complete request with these bytes, after the pending replies of the server.
    Answer(Vec<u8>),
}

/// A direction of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Replies, towards the client.
    Client,
    /// Requests, towards the server.
    Server,
}

/// The bytes that one direction of a connection may forward until it is cut.
#[derive(Debug)]
pub(super) struct Allowance {
    towards: Direction,
    seed: u64,
    /// The number of fault changes when the connection was made.
    made: u64,
    /// The number of the fault change, and the remaining bytes.
    remaining: Option<(u64, u64)>,
}

impl Allowance {
    pub(super) fn new(towards: Direction, seed: u64, made: u64) -> Self {
        Self { towards, seed, made, remaining: None }
    }

    /// Returns how many of `length` bytes are forwarded, and whether the connection is cut then.
    pub(super) fn take(&mut self, length: usize, current: &Current) -> (usize, bool) {
        let Current { fault, change } = current;
        let (towards, bytes) = match &**fault {
            Fault::CutAfter { towards, bytes } => (towards, bytes),
            Fault::CutOpen { towards, bytes } if self.made < *change => (towards, bytes),
            _ => return (length, false),
        };
        if *towards != self.towards {
            return (length, false);
        }
        let remaining = match self.remaining {
            Some((since, remaining)) if since == *change => remaining,
            _ => Random::new(self.seed ^ change)
                .within(bytes.start, bytes.end.max(bytes.start + 1) - 1),
        };
        let taken = usize::try_from(remaining).map_or(length, |remaining| remaining.min(length));
        let remaining = remaining.saturating_sub(taken as u64);
        self.remaining = Some((*change, remaining));
        (taken, remaining == 0)
    }
}
