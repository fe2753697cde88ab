//! A real Envoy with the configuration of `examples/envoy.yaml`, and the app behind it.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tollgate_testkit::server::free_port;

use crate::client::{Client, Reply};
use crate::service::{Scratch, eventually};

const CONFIGURATION: &str = include_str!("../../../../examples/envoy.yaml");

/// The port of Envoy in the example, that of Tollgate, and that of the app.
const PORTS: [&str; 3] = ["port_value: 10000", "port_value: 8081", "port_value: 8000"];

/// A running Envoy, stopped when it is dropped.
pub(crate) struct Envoy {
    process: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Envoy {
    /// Starts Envoy with the example, in which only the ports are replaced.
    pub(crate) fn start(scratch: &Scratch, tollgate: SocketAddr, app: &App) -> Self {
        Self::start_with(scratch, tollgate, app, None)
    }

    /// Starts Envoy with the example, in which the ports and one other text are replaced.
    pub(crate) fn start_with(
        scratch: &Scratch,
        tollgate: SocketAddr,
        app: &App,
        change: Option<(&str, &str)>,
    ) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let ports = [address, tollgate, app.address]
            .map(|address| format!("port_value: {}", address.port()));
        let changes = PORTS.into_iter().zip(ports.iter().map(String::as_str)).chain(change);
        let text = changes.fold(CONFIGURATION.to_owned(), |text, (from, to)| {
            assert_eq!(text.matches(from).count(), 1, "{from} in examples/envoy.yaml");
            text.replace(from, to)
        });
        let file = scratch.write("envoy.yaml", &text);
        let log = scratch.path().join("envoy.log");
        let output = File::create(&log).expect("the directory can be written to");
        let process = Command::new(program())
            .args(["-c", &file, "--concurrency", "1", "--log-level", "warning"])
            // Its shared memory would be used by all Envoys of the machine.
            .arg("--disable-hot-restart")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .spawn()
            .expect("Envoy starts");
        let mut envoy = Self { process, address, log };
        eventually("Envoy listens", || {
            let ended = envoy.process.try_wait().expect("it can be waited for");
            assert!(ended.is_none(), "Envoy did not start: {}", envoy.log());
            TcpStream::connect(address).is_ok()
        });
        envoy
    }

    /// Opens a connection.
    pub(crate) fn client(&self) -> ProxyClient {
        ProxyClient(Client::connect(self.address))
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            eprintln!("log of Envoy:\n{}", self.log());
        }
    }
}

/// Returns the program that `scripts/clients` installs, or the one in `TOLLGATE_ENVOY`.
fn program() -> PathBuf {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients/bin/envoy");
    let program = std::env::var_os("TOLLGATE_ENVOY").map_or(installed, PathBuf::from);
    let advice = "run scripts/clients, or set TOLLGATE_ENVOY to an envoy binary";
    assert!(program.is_file(), "{} not found: {advice}", program.display());
    program
}

/// One connection to Envoy.
pub(crate) struct ProxyClient(Client);

impl ProxyClient {
    /// Sends a request with this value of the header `x-client`.
    pub(crate) fn get(&mut self, client: &str) -> Proxied {
        Proxied(self.0.request("GET", "/", &[("x-client", client)], ""))
    }

    /// Sends a request without the header.
    pub(crate) fn get_without_client(&mut self) -> Proxied {
        Proxied(self.0.request("GET", "/", &[], ""))
    }
}

/// A response of Envoy.
#[derive(Debug, Clone)]
pub(crate) struct Proxied(pub(crate) Reply);

impl Proxied {
    /// Returns whether the app received the request. Its response is complete.
    pub(crate) fn is_passed(&self) -> bool {
        self.0.status == 200 && self.0.body == App::BODY
    }

    /// Returns whether Envoy refused the request as over the limit.
    pub(crate) fn is_refused(&self) -> bool {
        self.0.status == 429 && self.0.header("x-envoy-ratelimited") == Some("true")
    }

    /// Returns a rate limit header of Tollgate; `None` if Envoy got no decision in time.
    pub(crate) fn number(&self, header: &str) -> Option<u64> {
        Some(self.0.header(header)?.parse().expect("a number"))
    }

    /// Returns whether Tollgate decided.
    pub(crate) fn is_decided(&self) -> bool {
        self.number("ratelimit-limit").is_some()
    }
}

/// An HTTP/1.1 server that answers every request with 200, and counts requests and connections.
pub(crate) struct App {
    address: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    requests: AtomicUsize,
    connections: AtomicUsize,
}

impl App {
    pub(crate) const BODY: &str = "app";

    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("a bound address");
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                let shared = Arc::clone(&shared);
                thread::spawn(move || answer(&stream, &shared.requests));
            }
        });
        Self { address, counts }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn requests(&self) -> usize {
        self.counts.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::SeqCst)
    }
}

/// Answers requests without a body until the connection ends.
fn answer(mut stream: &TcpStream, requests: &AtomicUsize) -> Option<()> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    loop {
        // The empty line after the headers ends a request.
        lines.find(String::is_empty)?;
        requests.fetch_add(1, Ordering::SeqCst);
        let body = App::BODY;
        let response = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(response.as_bytes()).ok()?;
    }
}
