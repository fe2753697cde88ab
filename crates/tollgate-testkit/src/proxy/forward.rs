//! Forwarding of one connection's bytes in both directions.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope};
use std::time::Instant;

use super::fault::{Allowance, Direction, Fault};
use super::frames::Frames;
use super::hub::{Current, Hub};
use super::link::Link;

/// The size of a read, in bytes.
const CHUNK: usize = 16 * 1024;
/// The maximum number of delayed chunks; above it the server must wait.
const MAX_DELAYED: usize = 256;

/// A chunk of replies, and its time of arrival.
type ReplyChunk = (Instant, Vec<u8>);

/// Forwards one connection from begin to end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Forwarder<'a> {
    pub(super) hub: &'a Hub,
    pub(super) link: &'a Link,
    pub(super) upstream: u16,
    pub(super) seed: u64,
    /// The number of fault changes when the connection was made.
    pub(super) made: u64,
}

impl<'a> Forwarder<'a> {
    /// Forwards until both sides are done, or the connection is cut.
    pub(super) fn run(self) {
        thread::scope(|scope| self.forward_requests(scope).unwrap_or_else(self.close_on_error()));
    }

    /// Returns an error handler that closes both sides.
    fn close_on_error(self) -> impl FnOnce(io::Error) {
        move |_| {
            self.hub.close(self.link);
        }
    }

    fn forward_requests<'s>(self, scope: &'s Scope<'s, 'a>) -> io::Result<()> {
        let mut current = self.hub.current();
        if !matches!(*current.fault, Fault::Blackhole | Fault::Answer(_)) {
            self.server(scope)?;
        }
        let mut frames = Frames::default();
        let mut allowance = Allowance::new(Direction::Server, self.seed, self.made);
        let mut buffer = [0; CHUNK];
        loop {
            let read = self.link.read(&self.link.client, &mut buffer)?;
            if read == 0 {
                return self.link.server().map_or(Ok(()), |server| self.finish(server));
            }
            let mut bytes = &buffer[..read];
            // The fault at the begin of a request applies to all of it.
            if !frames.is_between() {
                let rest = frames.follow(bytes);
                let requests = u64::from(rest.is_end);
                self.forward_request(
                    scope,
                    &bytes[..rest.length],
                    requests,
                    &current,
                    &mut allowance,
                )?;
                bytes = &bytes[rest.length..];
            }
            if !bytes.is_empty() {
                current = self.hub.fault_for_request(self.link);
                self.forward_request(scope, bytes, frames.count(bytes), &current, &mut allowance)?;
            }
        }
    }

    /// Handles bytes that contain the ends of `requests` requests.
    fn forward_request<'s>(
        self,
        scope: &'s Scope<'s, 'a>,
        bytes: &[u8],
        requests: u64,
        current: &Current,
        allowance: &mut Allowance,
    ) -> io::Result<()> {
        match &*current.fault {
            Fault::Blackhole => Ok(()),
            Fault::Answer(reply) => {
                self.link.wait_until_replied();
                self.hub.answered.fetch_add(requests, Ordering::SeqCst);
                (0..requests).try_for_each(|_| self.link.write(&self.link.client, reply))
            }
            _ => {
                let server = self.server(scope)?;
                self.hub.throttle(self.link, bytes.len());
                self.link.add_pending(requests);
                self.forward(server, bytes, current, allowance)
            }
        }
    }

    /// Returns the connection to the server. Connects and starts to forward replies on the first call.
    fn server<'s>(self, scope: &'s Scope<'s, 'a>) -> io::Result<&'a TcpStream> {
        if let Some(server) = self.link.server() {
            return Ok(server);
        }
        let server = self.link.connect(self.upstream)?;
        let (queue, queued) = sync_channel(MAX_DELAYED);
        scope.spawn(move || self.receive(server, &queue).unwrap_or_else(self.close_on_error()));
        scope.spawn(move || self.forward_replies(&queued).unwrap_or_else(self.close_on_error()));
        Ok(server)
    }

    /// Queues replies with their time of arrival, because each chunk is delayed separately.
    fn receive(self, server: &TcpStream, queue: &SyncSender<ReplyChunk>) -> io::Result<()> {
        let mut buffer = [0; CHUNK];
        loop {
            let read = self.link.read(server, &mut buffer)?;
            let chunk = (Instant::now(), buffer[..read].to_vec());
            if read == 0 || queue.send(chunk).is_err() {
                return Ok(());
            }
        }
    }

    fn forward_replies(self, queued: &Receiver<ReplyChunk>) -> io::Result<()> {
        let mut frames = Frames::default();
        let mut allowance = Allowance::new(Direction::Client, self.seed, self.made);
        for (arrived, bytes) in queued {
            let current = self.hub.fault_for_reply(self.link, arrived);
            let replies = frames.count(&bytes);
            if *current.fault != Fault::Blackhole {
                self.forward(&self.link.client, &bytes, &current, &mut allowance)?;
            }
            self.link.complete(replies);
        }
        self.finish(&self.link.client)
    }

    fn forward(
        self,
        to: &TcpStream,
        bytes: &[u8],
        current: &Current,
        allowance: &mut Allowance,
    ) -> io::Result<()> {
        let (length, is_over) = allowance.take(bytes.len(), current);
        self.link.write(to, &bytes[..length])?;
        if is_over {
            self.hub.cut(self.link);
        }
        Ok(())
    }

    /// Closes the write side of a stream after the other side sent everything.
    fn finish(self, to: &TcpStream) -> io::Result<()> {
        // A cut connection is reset, not closed.
        if self.link.is_cut() {
            return Ok(());
        }
        match to.shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            result => result,
        }
    }
}
