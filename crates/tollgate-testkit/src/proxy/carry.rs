//! How the bytes of a connection get across.

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

const CHUNK: usize = 16 * 1024;
/// How many chunks of answers may wait for their time, before the server has to.
const WAITING: usize = 256;

/// A chunk of answers, and when it came.
type Answers = (Instant, Vec<u8>);

/// One connection from its beginning to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carrier<'a> {
    pub(super) hub: &'a Hub,
    pub(super) link: &'a Link,
    pub(super) upstream: u16,
    pub(super) seed: u64,
    /// How often the fault had been changed when it was made.
    pub(super) made: u64,
}

impl<'a> Carrier<'a> {
    /// Carries until both sides are done, or it is cut.
    pub(super) fn run(self) {
        thread::scope(|scope| self.requests(scope).unwrap_or_else(self.fail()));
    }

    /// A side that fails fails the other.
    fn fail(self) -> impl FnOnce(io::Error) {
        move |_| {
            self.hub.end(self.link);
        }
    }

    fn requests<'s>(self, scope: &'s Scope<'s, 'a>) -> io::Result<()> {
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
                return self.link.server().map_or(Ok(()), |server| self.done(server));
            }
            let mut bytes = &buffer[..read];
            // A request goes the way it began.
            if !frames.is_between() {
                let begun = frames.follow(bytes);
                let requests = u64::from(begun.is_end);
                self.request(scope, &bytes[..begun.length], requests, &current, &mut allowance)?;
                bytes = &bytes[begun.length..];
            }
            if !bytes.is_empty() {
                current = self.hub.fate_of_request(self.link);
                self.request(scope, bytes, frames.count(bytes), &current, &mut allowance)?;
            }
        }
    }

    /// Bytes in which so many requests end.
    fn request<'s>(
        self,
        scope: &'s Scope<'s, 'a>,
        bytes: &[u8],
        requests: u64,
        current: &Current,
        allowance: &mut Allowance,
    ) -> io::Result<()> {
        match &*current.fault {
            Fault::Blackhole => Ok(()),
            Fault::Answer(answer) => {
                self.link.wait_until_paid();
                self.hub.answered.fetch_add(requests, Ordering::SeqCst);
                (0..requests).try_for_each(|_| self.link.write(&self.link.client, answer))
            }
            _ => {
                let server = self.server(scope)?;
                self.link.owe(requests);
                self.carry(server, bytes, current, allowance)
            }
        }
    }

    /// The server's side, which answers from the moment it is there.
    fn server<'s>(self, scope: &'s Scope<'s, 'a>) -> io::Result<&'a TcpStream> {
        if let Some(server) = self.link.server() {
            return Ok(server);
        }
        let server = self.link.connect(self.upstream)?;
        let (queue, queued) = sync_channel(WAITING);
        scope.spawn(move || self.receive(server, &queue).unwrap_or_else(self.fail()));
        scope.spawn(move || self.answers(&queued).unwrap_or_else(self.fail()));
        Ok(server)
    }

    /// Notes when answers came: each is delayed by itself.
    fn receive(self, server: &TcpStream, queue: &SyncSender<Answers>) -> io::Result<()> {
        let mut buffer = [0; CHUNK];
        loop {
            let read = self.link.read(server, &mut buffer)?;
            let answers = (Instant::now(), buffer[..read].to_vec());
            if read == 0 || queue.send(answers).is_err() {
                return Ok(());
            }
        }
    }

    fn answers(self, queued: &Receiver<Answers>) -> io::Result<()> {
        let mut frames = Frames::default();
        let mut allowance = Allowance::new(Direction::Client, self.seed, self.made);
        for (since, bytes) in queued {
            let current = self.hub.fate_of_answer(self.link, since);
            let answers = frames.count(&bytes);
            if *current.fault != Fault::Blackhole {
                self.carry(&self.link.client, &bytes, &current, &mut allowance)?;
            }
            self.link.pay(answers);
        }
        self.done(&self.link.client)
    }

    fn carry(
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

    /// Tells one side that the other has no more to say, if it is there to be told.
    fn done(self, to: &TcpStream) -> io::Result<()> {
        // Who is cut gets no goodbye.
        if self.link.is_cut() {
            return Ok(());
        }
        match to.shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            result => result,
        }
    }
}
