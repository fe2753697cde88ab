//! A connection with pipelined commands: unsent, in flight, and their replies.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::iter;
use std::mem;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::time::Instant;

use super::command_queue::{CommandQueue, Opener, Pending};
use crate::connection::{Connection, ReadError, ServerInfo};
use crate::failure::Failure;
use crate::resp::{REPLY_CAP, Reply};

/// Maximum number of commands in one write.
const MAX_COMMANDS_PER_WRITE: usize = 64;

/// Number of elements from which a reply is large: it decides many plans.
const LARGE_REPLY: usize = 64;

const UNSOLICITED: &str = "the server sent a reply without a command";

/// How far replies were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadUntil {
    /// All replies that have arrived were delivered.
    End,
    /// More replies may have arrived after a large one.
    LargeReply,
}

pub(super) struct Pipeline {
    connection: Connection,
    opened_at: Instant,
    /// Commands of which the socket has accepted no byte.
    unsent: VecDeque<Pending>,
    /// The unsent rest of the last command in flight, if any.
    rest: Bytes,
    /// Commands that are sent wholly or in part: they may have run.
    in_flight: VecDeque<Pending>,
    /// Commands that their callers withdrew before they were sent.
    withdrawn: Vec<Pending>,
}

impl Pipeline {
    pub(super) fn new(connection: Connection) -> Self {
        let (unsent, in_flight) = (VecDeque::new(), VecDeque::new());
        let opened_at = Instant::now();
        Self { connection, opened_at, unsent, rest: Bytes::new(), in_flight, withdrawn: Vec::new() }
    }

    pub(super) fn info(&self) -> Option<ServerInfo> {
        self.connection.info.clone()
    }

    /// Returns when the connection was established.
    pub(super) const fn opened_at(&self) -> Instant {
        self.opened_at
    }

    /// Whether no command is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    pub(super) fn oldest_deadline(&self) -> Option<Instant> {
        self.in_flight.front().or(self.unsent.front()).map(|pending| pending.deadline)
    }

    /// Takes all queued commands. Returns the callers that wait only for the connection.
    pub(super) fn take(&mut self, queue: &CommandQueue) -> Vec<Opener> {
        queue.take(&mut self.unsent)
    }

    /// Closes the connection. Returns the commands that may have run, and those that have not.
    pub(super) fn close(self) -> (VecDeque<Pending>, VecDeque<Pending>) {
        (self.in_flight, self.unsent)
    }

    /// Returns the commands that were withdrawn before they were sent.
    pub(super) fn take_withdrawn(&mut self) -> Vec<Pending> {
        mem::take(&mut self.withdrawn)
    }

    /// Reads and delivers replies that have arrived, until a large one. An error means that the connection is unusable.
    pub(super) fn read(
        &mut self,
        context: &mut Context<'_>,
        queue: &CommandQueue,
    ) -> Result<ReadUntil, String> {
        loop {
            if self.deliver_replies(queue)? == ReadUntil::LargeReply {
                return Ok(ReadUntil::LargeReply);
            }
            if self.in_flight.is_empty() && !self.connection.decoder.is_empty() {
                return Err(UNSOLICITED.to_owned());
            }
            let Connection { stream, decoder, .. } = &mut self.connection;
            match pin!(stream.read_buf(decoder.buffer())).poll(context) {
                Poll::Pending => return Ok(ReadUntil::End),
                Poll::Ready(Ok(0)) => return Err(ReadError::Closed.to_string()),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Err(error.to_string()),
            }
        }
    }

    fn deliver_replies(&mut self, queue: &CommandQueue) -> Result<ReadUntil, String> {
        if !self.connection.decoder.is_empty() {
            queue.replied();
        }
        loop {
            let cap = self.in_flight.front().map_or(REPLY_CAP, |pending| pending.reply_cap);
            match self.connection.decoder.next(cap) {
                Ok(None) => return Ok(ReadUntil::End),
                Ok(Some(reply)) => {
                    let is_large =
                        matches!(&reply, Reply::Array(parts) if parts.len() >= LARGE_REPLY);
                    self.deliver(reply, queue)?;
                    if is_large && !self.connection.decoder.is_empty() {
                        return Ok(ReadUntil::LargeReply);
                    }
                }
                Err(malformed) => return Err(ReadError::from(malformed).to_string()),
            }
        }
    }

    fn deliver(&mut self, reply: Reply, queue: &CommandQueue) -> Result<(), String> {
        let is_partly_sent = self.in_flight.len() == 1 && !self.rest.is_empty();
        if is_partly_sent {
            return Err(UNSOLICITED.to_owned());
        }
        let Some(pending) = self.in_flight.front_mut() else { return Err(UNSOLICITED.to_owned()) };
        if pending.skipped_replies > 0 {
            pending.skipped_replies -= 1;
            return Ok(());
        }
        let Some(pending) = self.in_flight.pop_front() else { return Ok(()) };
        let reply = match reply {
            Reply::Error(error) => {
                let failure = Failure::Refused(error);
                // The server was the primary and has become a replica.
                if failure.is_read_only() {
                    queue.retire_connection();
                }
                Err(failure)
            }
            reply => Ok(reply),
        };
        queue.finish(pending.on_reply, reply);
        Ok(())
    }

    /// Writes as much as the socket accepts.
    pub(super) fn write(&mut self, context: &mut Context<'_>) -> Result<(), String> {
        loop {
            let open = self.open_gates();
            if self.rest.is_empty() && open == 0 {
                return self.flush(context);
            }
            let outcome = self.poll_write(context, open);
            let in_flight = self.in_flight.len();
            if let Poll::Ready(Ok(count)) = outcome {
                self.advance(count);
            }
            self.close_gates(open - (self.in_flight.len() - in_flight));
            match outcome {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err("the socket accepts no bytes".to_owned()),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Err(error.to_string()),
            }
        }
    }

    fn flush(&mut self, context: &mut Context<'_>) -> Result<(), String> {
        match Pin::new(&mut self.connection.stream).poll_flush(context) {
            Poll::Ready(Err(error)) => Err(error.to_string()),
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }

    /// Opens the gates of the first unsent commands and removes withdrawn ones. Returns the number of open gates.
    fn open_gates(&mut self) -> usize {
        let mut open = 0;
        while open + 1 < MAX_COMMANDS_PER_WRITE
            && let Some(pending) = self.unsent.get(open)
        {
            if pending.gate.as_ref().is_none_or(|gate| gate.begin_sending()) {
                open += 1;
            } else {
                self.withdrawn.extend(self.unsent.remove(open));
            }
        }
        open
    }

    /// Closes the gates of the first unsent commands: the socket has accepted none of their bytes.
    fn close_gates(&self, count: usize) {
        self.unsent.iter().take(count).filter_map(|pending| pending.gate.as_ref()).for_each(
            |gate| {
                gate.mark_unsent();
            },
        );
    }

    fn poll_write(&mut self, context: &mut Context<'_>, open: usize) -> Poll<io::Result<usize>> {
        let commands = self.unsent.iter().take(open).map(|pending| &pending.bytes);
        let mut slices = [IoSlice::new(&[]); MAX_COMMANDS_PER_WRITE];
        let mut used = 0;
        for (slice, bytes) in slices.iter_mut().zip(iter::once(&self.rest).chain(commands)) {
            *slice = IoSlice::new(bytes);
            used += 1;
        }
        let slices = slices.get(..used).unwrap_or_default();
        Pin::new(&mut self.connection.stream).poll_write_vectored(context, slices)
    }

    /// Marks `count` bytes as accepted. Every command with an accepted byte is in flight.
    fn advance(&mut self, mut count: usize) {
        loop {
            let accepted = count.min(self.rest.len());
            self.rest.advance(accepted);
            count -= accepted;
            if count == 0 {
                return;
            }
            let Some(mut pending) = self.unsent.pop_front() else { return };
            self.rest = mem::take(&mut pending.bytes);
            self.in_flight.push_back(pending);
        }
    }
}
