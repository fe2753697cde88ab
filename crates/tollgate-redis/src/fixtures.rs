//! Servers for unit tests: real ones, and scripted peers.

use std::net::TcpListener as StdTcpListener;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};
use tollgate_testkit::server::{Certificates, Flavor, Server};

use crate::address::Address;
use crate::connection::{Connection, Route};
use crate::link::LinkLimits;
use crate::resp::{Decoder, Reply};

mod tls_server;

pub(crate) use tls_server::{TlsServer, acceptor, text};

/// Timeout that is long enough for a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Limits for tests in which nothing should time out.
pub(crate) fn long_timeouts() -> LinkLimits {
    LinkLimits { connect_timeout: LONG, reply_timeout: LONG, ..LinkLimits::default() }
}

/// Waits until the condition is true.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out waiting until {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Starts a redis-server with these options.
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

/// Connects, or panics.
pub(crate) async fn connect(address: &Address) -> Connection {
    Route::from(address).connect(LONG).await.unwrap_or_else(|failure| panic!("{failure}"))
}

/// One step of a peer on a connection. After the last step it closes the connection.
#[derive(Clone)]
pub(crate) enum Step {
    /// Replies to the handshake like Redis.
    Handshake,
    /// Reads this number of commands.
    Expect(usize),
    Send(Vec<u8>),
    /// Reads one byte of a command.
    ReadByte,
    /// Replies to every command with this text.
    ReplyToAll(&'static str),
    /// Reads and sends nothing more.
    Hang,
    /// Waits for the notification.
    Wait(Arc<tokio::sync::Notify>),
}

pub(crate) fn send(text: &str) -> Step {
    Step::Send(text.as_bytes().to_vec())
}

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Tcp,
    Tls,
}

impl Protocol {
    pub(crate) const ALL: [Self; 2] = [Self::Tcp, Self::Tls];
}

/// A peer with one script per connection. The last script is used for all further connections.
pub(crate) struct Peer {
    port: u16,
    /// Its certificates, if it uses TLS.
    certificates: Option<Certificates>,
    recorded: Arc<Mutex<Recorded>>,
}

/// The events that a peer has recorded.
#[derive(Default)]
struct Recorded {
    connections: usize,
    /// Number of connections that the peer has closed.
    closed: usize,
    /// Every command after the handshake, on any connection.
    commands: Vec<String>,
}

impl Peer {
    pub(crate) async fn start(scripts: Vec<Vec<Step>>) -> Self {
        Self::start_with(Protocol::Tcp, scripts).await
    }

    pub(crate) async fn start_with(protocol: Protocol, scripts: Vec<Vec<Step>>) -> Self {
        let certificates = (protocol == Protocol::Tls).then(Certificates::new);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let acceptor = certificates.as_ref().map(|certificates| acceptor(&certificates.server));
        let recorded: Arc<Mutex<Recorded>> = Arc::default();
        let recording = Arc::clone(&recorded);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let nth = recording.lock().connections;
                recording.lock().connections += 1;
                let script = scripts.get(nth).or(scripts.last()).cloned().unwrap_or_default();
                let (acceptor, recorded) = (acceptor.clone(), Arc::clone(&recording));
                tokio::spawn(async move {
                    let stream: Box<dyn Stream> = match acceptor {
                        None => Box::new(socket),
                        Some(acceptor) => Box::new(acceptor.accept(socket).await.unwrap()),
                    };
                    let connection = PeerConnection {
                        stream,
                        decoder: Decoder::default(),
                        recorded: Arc::clone(&recorded),
                    };
                    connection.play(script).await;
                    recorded.lock().closed += 1;
                });
            }
        });
        Self { port, certificates, recorded }
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
        self.recorded.lock().connections
    }

    pub(crate) fn closed(&self) -> usize {
        self.recorded.lock().closed
    }

    pub(crate) fn commands(&self) -> Vec<String> {
        self.recorded.lock().commands.clone()
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

struct PeerConnection {
    stream: Box<dyn Stream>,
    decoder: Decoder,
    recorded: Arc<Mutex<Recorded>>,
}

impl PeerConnection {
    async fn play(mut self, script: Vec<Step>) {
        for step in script {
            let outcome = match step {
                Step::Handshake => self.handshake().await,
                Step::Expect(count) => self.expect(count).await,
                Step::Send(bytes) => self.write(&bytes).await,
                Step::ReadByte => self.stream.read_u8().await.ok().map(drop),
                Step::ReplyToAll(reply) => self.reply_to_all(reply).await,
                Step::Hang => std::future::pending().await,
                Step::Wait(notify) => {
                    notify.notified().await;
                    Some(())
                }
            };
            if outcome.is_none() {
                return;
            }
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).await.ok()?;
        self.stream.flush().await.ok()
    }

    async fn handshake(&mut self) -> Option<()> {
        self.command().await?;
        self.command().await?;
        self.write(b"+OK\r\n$22\r\nredis_version:7.0.15\r\n\r\n").await
    }

    async fn expect(&mut self, count: usize) -> Option<()> {
        for _ in 0..count {
            let command = self.command().await?;
            self.recorded.lock().commands.push(command);
        }
        Some(())
    }

    async fn reply_to_all(&mut self, reply: &str) -> Option<()> {
        loop {
            self.expect(1).await?;
            self.write(reply.as_bytes()).await?;
        }
    }

    /// A command has the format of a reply: an array of strings.
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
