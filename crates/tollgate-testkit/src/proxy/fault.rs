//! What can be wrong between a client and its server.

use std::ops::Range;
use std::time::Duration;

use super::hub::Current;
use crate::random::Random;

/// What a proxy does to what it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    Pass,
    /// Cuts each connection when it has carried so many bytes one way, and none more. How many is drawn
    /// for each connection when this fault first concerns it; at zero the first byte is not carried.
    CutAfter {
        /// Which way bytes are counted.
        towards: Direction,
        /// How many it may be.
        bytes: Range<u64>,
    },
    /// As `CutAfter`, but only the connections that there are: who connects from now on is not cut, and so
    /// is back at once.
    CutOpen {
        /// Which way bytes are counted.
        towards: Direction,
        /// How many it may be.
        bytes: Range<u64>,
    },
    /// Each answer comes so much later. Requests do not: the server has done what a client gives up on.
    Delay(Duration),
    /// Connects, and swallows everything. Nothing reaches the server: [`Server::hang`] is for requests
    /// that do, late. A connection that lost something is cut when this ends, since TCP knows no gaps.
    ///
    /// [`Server::hang`]: crate::server::Server::hang
    Blackhole,
    /// Gives each whole request these bytes instead of the server's answer, after the answers that are
    /// still on their way.
    Answer(Vec<u8>),
}

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Answers.
    Client,
    /// Requests.
    Server,
}

/// What one direction of one connection may still carry until it is cut.
#[derive(Debug)]
pub(super) struct Allowance {
    towards: Direction,
    seed: u64,
    /// How often the fault had been changed when the connection was made.
    made: u64,
    /// Since which change of the fault, and how many bytes.
    left: Option<(u64, u64)>,
}

impl Allowance {
    pub(super) fn new(towards: Direction, seed: u64, made: u64) -> Self {
        Self { towards, seed, made, left: None }
    }

    /// How many of so many bytes are carried, and whether it is over then.
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
        let left = match self.left {
            Some((since, left)) if since == *change => left,
            _ => Random::new(self.seed ^ change)
                .within(bytes.start, bytes.end.max(bytes.start + 1) - 1),
        };
        let taken = usize::try_from(left).map_or(length, |left| left.min(length));
        let left = left.saturating_sub(taken as u64);
        self.left = Some((*change, left));
        (taken, left == 0)
    }
}
