//! Real proxies with the configurations of `examples/proxies`, which ask Tollgate before each request.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use tokio::net::TcpSocket;
use tokio::runtime;
use tollgate_testkit::server::free_port;

use crate::client::Client;
use crate::envoy_proxy::App;
use crate::service::{Scratch, eventually};

/// The port of the proxy in the examples, that of Tollgate, and that of the app.
const PORTS: [&str; 3] = ["10080", "8080", "8000"];

/// A kind of proxy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProxyKind {
    program: &'static str,
    /// The files of its example; the first is that of the command line.
    pub(crate) files: &'static [&'static str],
    arguments: &'static [&'static str],
}

pub(crate) const NGINX: ProxyKind = ProxyKind {
    program: "nginx",
    files: &["nginx.conf"],
    arguments: &["-p", ".", "-e", "stderr", "-g", "daemon off; pid nginx.pid;", "-c"],
};
pub(crate) const HAPROXY: ProxyKind = ProxyKind {
    program: "haproxy",
    files: &["haproxy.cfg", "haproxy.lua"],
    arguments: &["-db", "-f"],
};
pub(crate) const TRAEFIK: ProxyKind = ProxyKind {
    program: "traefik",
    files: &["traefik.yaml", "traefik-routes.yaml"],
    arguments: &["--configFile"],
};
pub(crate) const CADDY: ProxyKind = ProxyKind {
    program: "caddy",
    files: &["Caddyfile"],
    arguments: &["run", "--adapter", "caddyfile", "--config"],
};

/// A running proxy, stopped when it is dropped.
pub(crate) struct AuthProxy {
    process: Child,
    address: SocketAddr,
    log: PathBuf,
    _folder: Scratch,
}

impl AuthProxy {
    /// Starts a proxy with its example, in which only the ports are replaced.
    pub(crate) fn start(kind: ProxyKind, tollgate: SocketAddr, app: &App) -> Self {
        Self::start_with(kind, tollgate, app, |example| example)
    }

    /// Starts a proxy with its example as changed by `edit`.
    pub(crate) fn start_with(
        kind: ProxyKind,
        tollgate: SocketAddr,
        app: &App,
        edit: impl Fn(String) -> String,
    ) -> Self {
        let folder = Scratch::new();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let ports = [address, tollgate, app.address()].map(|address| address.port().to_string());
        for file in kind.files {
            let text = PORTS.iter().zip(&ports).enumerate().fold(
                edit(example(file)),
                // In two steps, because a free port may be one of the example.
                |text, (index, (from, _))| text.replace(from, &format!("@{index}@")),
            );
            let text = ports
                .iter()
                .enumerate()
                .fold(text, |text, (index, port)| text.replace(&format!("@{index}@"), port));
            folder.write(file, &text);
        }
        let log = folder.path().join("proxy.log");
        let output = File::create(&log).expect("the directory can be written to");
        let configuration = folder.path().join(kind.files[0]);
        let process = Command::new(program(kind.program))
            .args(kind.arguments)
            .arg(configuration)
            .current_dir(folder.path())
            .env("XDG_DATA_HOME", folder.path())
            .env("XDG_CONFIG_HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a file"))
            .stderr(output)
            .spawn()
            .expect("the proxy starts");
        let mut proxy = Self { process, address, log, _folder: folder };
        // Traefik listens before it has routes.
        eventually("the proxy passes requests on", || {
            let ended = proxy.process.try_wait().expect("it can be waited for");
            assert!(ended.is_none(), "{} did not start: {}", kind.program, proxy.log());
            TcpStream::connect(address).is_ok() && proxy.client_from(9).get("/ready").status == 200
        });
        proxy
    }

    /// Opens a connection from 127.0.0.`host`.
    pub(crate) fn client_from(&self, host: u8) -> Client {
        let runtime =
            runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        let stream = runtime.block_on(async {
            let socket = TcpSocket::new_v4().expect("a socket");
            socket.bind(SocketAddr::from(([127, 0, 0, host], 0))).expect("a loopback address");
            socket.connect(self.address).await.expect("the proxy accepts connections")
        });
        let stream = stream.into_std().expect("a stream");
        stream.set_nonblocking(false).expect("a blocking stream");
        stream.set_nodelay(true).expect("a stream");
        Client::over(stream)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for AuthProxy {
    fn drop(&mut self) {
        // nginx and HAProxy have worker processes, which end with SIGTERM of the main process.
        crate::service::signal(self.process.id(), "TERM");
        let _ = self.process.wait();
        if thread::panicking() {
            eprintln!("log of the proxy:\n{}", self.log());
        }
    }
}

/// Returns the text of an example.
pub(crate) fn example(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/proxies");
    std::fs::read_to_string(folder.join(file)).expect("the example exists")
}

/// Returns the program that `scripts/clients` installs, in its folder or in the system.
fn program(name: &str) -> PathBuf {
    let installed =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients/bin").join(name);
    if installed.is_file() {
        return installed;
    }
    let folders = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
    let found =
        folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} not found: run scripts/clients"))
}
