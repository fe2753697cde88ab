//! A live connection: what is to be written, what has been, and what comes back.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::iter;
use std::mem;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::time::Instant;

use super::shared::{Opened, Pending, Shared};
use crate::connection::{Connection, ReadError, ServerInfo};
use crate::failure::Failure;
use crate::resp::{REPLY_CAP, Reply};

/// How many commands one write takes.
const TOGETHER: usize = 64;

const UNASKED: &str = "the server answered what it was not asked";

pub(super) struct Wire {
    connection: Connection,
    /// Commands of which no byte has been taken by the socket.
    unsent: VecDeque<Pending>,
    /// What remains of the last one under way. Empty if it has left whole.
    rest: Bytes,
    /// Commands that have left, or begun to: they may have run.
    in_flight: VecDeque<Pending>,
}

impl Wire {
    pub(super) fn new(connection: Connection) -> Self {
        let (unsent, in_flight) = (VecDeque::new(), VecDeque::new());
        Self { connection, unsent, rest: Bytes::new(), in_flight }
    }

    pub(super) fn info(&self) -> Option<ServerInfo> {
        self.connection.info.clone()
    }

    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// When the oldest command must have its reply.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.in_flight.front().or(self.unsent.front()).map(|pending| pending.deadline)
    }

    /// Takes over all that is queued, and returns who waits for the connection alone.
    pub(super) fn take(&mut self, shared: &Shared) -> Vec<Opened> {
        shared.take(&mut self.unsent)
    }

    /// Closes the connection. What may have run, and what certainly has not.
    pub(super) fn close(self) -> (VecDeque<Pending>, VecDeque<Pending>) {
        (self.in_flight, self.unsent)
    }

    /// Reads all that has come and hands it out. Fails when the connection is of no more use.
    pub(super) fn read(
        &mut self,
        context: &mut Context<'_>,
        shared: &Shared,
    ) -> Result<(), String> {
        loop {
            self.hand_out(shared)?;
            if self.in_flight.is_empty() && !self.connection.decoder.is_empty() {
                return Err(UNASKED.to_owned());
            }
            let Connection { stream, decoder, .. } = &mut self.connection;
            match pin!(stream.read_buf(decoder.buffer())).poll(context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(ReadError::Closed.to_string()),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Err(error.to_string()),
            }
        }
    }

    fn hand_out(&mut self, shared: &Shared) -> Result<(), String> {
        loop {
            let cap = self.in_flight.front().map_or(REPLY_CAP, |pending| pending.reply_cap);
            match self.connection.decoder.next(cap) {
                Ok(None) => return Ok(()),
                Ok(Some(reply)) => self.answer(reply, shared)?,
                Err(malformed) => return Err(ReadError::from(malformed).to_string()),
            }
        }
    }

    fn answer(&mut self, reply: Reply, shared: &Shared) -> Result<(), String> {
        let is_half_sent = self.in_flight.len() == 1 && !self.rest.is_empty();
        if is_half_sent {
            return Err(UNASKED.to_owned());
        }
        let Some(pending) = self.in_flight.front_mut() else { return Err(UNASKED.to_owned()) };
        if pending.replies_before > 0 {
            pending.replies_before -= 1;
            return Ok(());
        }
        let Some(pending) = self.in_flight.pop_front() else { return Ok(()) };
        let reply = match reply {
            Reply::Error(error) => {
                let failure = Failure::Refused(error);
                // It was the primary once.
                if failure.is_read_only() {
                    shared.leave_server();
                }
                Err(failure)
            }
            reply => Ok(reply),
        };
        shared.finish(pending.then, reply);
        Ok(())
    }

    /// Writes as much as the socket takes.
    pub(super) fn write(&mut self, context: &mut Context<'_>) -> Result<(), String> {
        loop {
            if self.rest.is_empty() && self.unsent.is_empty() {
                return self.flush(context);
            }
            match self.poll_write(context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err("the socket takes nothing".to_owned()),
                Poll::Ready(Ok(count)) => self.advance(count),
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

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let commands = self.unsent.iter().map(|pending| &pending.bytes);
        let mut slices = [IoSlice::new(&[]); TOGETHER];
        let mut used = 0;
        for (slice, bytes) in slices.iter_mut().zip(iter::once(&self.rest).chain(commands)) {
            *slice = IoSlice::new(bytes);
            used += 1;
        }
        let slices = slices.get(..used).unwrap_or_default();
        Pin::new(&mut self.connection.stream).poll_write_vectored(context, slices)
    }

    /// So many bytes have been taken: every command that had one among them is under way.
    fn advance(&mut self, mut count: usize) {
        loop {
            let taken = count.min(self.rest.len());
            self.rest.advance(taken);
            count -= taken;
            if count == 0 {
                return;
            }
            let Some(mut pending) = self.unsent.pop_front() else { return };
            self.rest = mem::take(&mut pending.bytes);
            self.in_flight.push_back(pending);
        }
    }
}
