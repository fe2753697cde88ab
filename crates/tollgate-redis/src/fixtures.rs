//! Servers for the unit tests: real ones, and peers that follow a script.

use std::net::TcpListener as StdTcpListener;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};
use tollgate_testkit::server::{Certificates, Flavor, Server};

use crate::address::Address;
use crate::connection::Connection;
use crate::link::Patience;
use crate::resp::{Decoder, Reply};
use crate::route::Route;

mod secured;

pub(crate) use secured::{Secured, acceptor, text};

/// Long enough for a busy machine, and short enough not to wait for without need.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// For tests in which nothing should time out.
pub(crate) fn patient() -> Patience {
    Patience { connect: LONG, reply: LONG, ..Patience::default() }
}

/// Waits until it is so.
pub(crate) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < deadline, "it never came to be that {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// A redis-server of its own, started with these options.
pub(crate) fn serve(options: &[&str]) -> Server {
    let builder = Server::builder(Flavor::Redis);
    options.iter().fold(builder, |builder, option| builder.arg(*option)).start()
}

pub(crate) fn address_of(server: &Server) -> Address {
    address(server.port())
}

pub(crate) fn free_port() -> u16 {
    StdTcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub(crate) fn address(port: u16) -> Address {
    format!("redis://127.0.0.1:{port}").parse().unwrap()
}

/// A connection, which must be got.
pub(crate) async fn connect(address: &Address) -> Connection {
    Route::from(address).connect(LONG).await.unwrap_or_else(|failure| panic!("{failure}"))
}

/// What a peer does on one connection. At the end it closes it.
#[derive(Clone)]
pub(crate) enum Step {
    /// Answers the handshake as a Redis would.
    Greet,
    /// Waits for so many commands.
    Expect(usize),
    Say(Vec<u8>),
    /// Waits for a part of a command, and reads no more.
    Nibble,
    /// Answers every command with this.
    AnswerAll(&'static str),
    /// Reads nothing and says nothing, for ever.
    Hang,
    /// Waits until told to go on.
    Wait(Arc<tokio::sync::Notify>),
}

pub(crate) fn say(text: &str) -> Step {
    Step::Say(text.as_bytes().to_vec())
}

/// What a connection runs over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Tcp,
    Tls,
}

impl Over {
    pub(crate) const ALL: [Self; 2] = [Self::Tcp, Self::Tls];
}

/// A peer that follows a script: the first on its first connection, and so on, the last ever after.
pub(crate) struct Peer {
    port: u16,
    /// Whom it is certified by, if it speaks TLS.
    certificates: Option<Certificates>,
    seen: Arc<Mutex<Seen>>,
}

/// What a peer has seen.
#[derive(Default)]
struct Seen {
    connections: usize,
    /// How many of these have been closed by the peer.
    ended: usize,
    /// Every command after the handshake, on any connection.
    commands: Vec<String>,
}

impl Peer {
    pub(crate) async fn start(scripts: Vec<Vec<Step>>) -> Self {
        Self::start_over(Over::Tcp, scripts).await
    }

    pub(crate) async fn start_over(over: Over, scripts: Vec<Vec<Step>>) -> Self {
        let certificates = (over == Over::Tls).then(Certificates::new);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let acceptor = certificates.as_ref().map(|it| acceptor(&it.server));
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let noted = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let nth = noted.lock().connections;
                noted.lock().connections += 1;
                let script = scripts.get(nth).or(scripts.last()).cloned().unwrap_or_default();
                let (acceptor, seen) = (acceptor.clone(), Arc::clone(&noted));
                tokio::spawn(async move {
                    let stream: Box<dyn Stream> = match acceptor {
                        None => Box::new(socket),
                        Some(acceptor) => Box::new(acceptor.accept(socket).await.unwrap()),
                    };
                    let actor =
                        Actor { stream, decoder: Decoder::default(), seen: Arc::clone(&seen) };
                    actor.play(script).await;
                    seen.lock().ended += 1;
                });
            }
        });
        Self { port, certificates, seen }
    }

    pub(crate) fn address(&self) -> Address {
        match &self.certificates {
            None => address(self.port),
            Some(certificates) => {
                let (port, ca) = (self.port, text(&certificates.ca));
                format!("rediss://127.0.0.1:{port}?ca={ca}").parse().unwrap()
            }
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().connections
    }

    pub(crate) fn ended(&self) -> usize {
        self.seen.lock().ended
    }

    pub(crate) fn commands(&self) -> Vec<String> {
        self.seen.lock().commands.clone()
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

struct Actor {
    stream: Box<dyn Stream>,
    decoder: Decoder,
    seen: Arc<Mutex<Seen>>,
}

impl Actor {
    async fn play(mut self, script: Vec<Step>) {
        for step in script {
            let went_well = match step {
                Step::Greet => self.greet().await,
                Step::Expect(count) => self.expect(count).await,
                Step::Say(bytes) => self.write(&bytes).await,
                Step::Nibble => self.stream.read_u8().await.ok().map(drop),
                Step::AnswerAll(reply) => self.answer_all(reply).await,
                Step::Hang => std::future::pending().await,
                Step::Wait(notify) => {
                    notify.notified().await;
                    Some(())
                }
            };
            if went_well.is_none() {
                return;
            }
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).await.ok()?;
        self.stream.flush().await.ok()
    }

    async fn greet(&mut self) -> Option<()> {
        self.command().await?;
        self.command().await?;
        self.write(b"+OK\r\n$22\r\nredis_version:7.0.15\r\n\r\n").await
    }

    async fn expect(&mut self, count: usize) -> Option<()> {
        for _ in 0..count {
            let command = self.command().await?;
            self.seen.lock().commands.push(command);
        }
        Some(())
    }

    async fn answer_all(&mut self, reply: &str) -> Option<()> {
        loop {
            self.expect(1).await?;
            self.write(reply.as_bytes()).await?;
        }
    }

    /// Commands have the form of replies: arrays of strings.
    async fn command(&mut self) -> Option<String> {
        loop {
            if let Some(Reply::Array(words)) = self.decoder.next(usize::MAX / 2).unwrap() {
                let words = words.iter().map(|word| match word {
                    Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                    other => panic!("{other:?} in a command"),
                });
                return Some(words.collect::<Vec<_>>().join(" "));
            }
            if self.stream.read_buf(self.decoder.buffer()).await.ok()? == 0 {
                return None;
            }
        }
    }
}
