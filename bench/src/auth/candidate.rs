//! nginx with an auth server: tollgate, or a server with a constant response.

use std::net::SocketAddr;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::Outcome;
use crate::http::codec::PROTOCOL;
use crate::load::candidate::Candidate;
use crate::load::task::RequestSpec;
use crate::server::{Address, Cores, Role, Server};

/// Path of the app and of the constant auth server.
const PATH: &str = "/check";
/// Length of their responses in bytes.
const BODY_BYTES: &str = "64";
/// The policy: a limit per address that is never exceeded, for any path.
const POLICY: &str = "version: 1\nrules: [{ name: all, per: [ip], limits: [{ rate: 1000000000/h, algorithm: token_bucket }] }]\n";

/// Paths of the programs, and their CPU placement.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The tollgate server.
    pub tollgate: PathBuf,
    /// nginx.
    pub nginx: PathBuf,
    /// This package's `axum_constant`.
    pub constant: PathBuf,
    /// This package's `load`.
    pub load: PathBuf,
    /// CPU placement.
    pub cores: Cores,
}

/// nginx and the servers behind it.
#[derive(Debug)]
pub struct Proxy {
    /// nginx, which the load generator calls.
    pub candidate: Candidate,
    _servers: [Server; 2],
    _folder: TempDir,
}

impl Programs {
    /// Starts nginx in front of tollgate.
    ///
    /// # Errors
    /// A program does not start.
    pub fn with_tollgate(&self) -> Outcome<Proxy> {
        let folder = tempfile::tempdir()?;
        let policy = folder.path().join("policy.yaml");
        std::fs::write(&policy, POLICY)?;
        let mut command = self.cores.command(Role::Server, &self.tollgate);
        command.args(["serve", "--http", "127.0.0.1:0", "--trusted-proxies", "127.0.0.1"]);
        command.arg("--policy").arg(policy);
        let auth = Server::start(command, Address::Logged("http"))?;
        self.proxy(folder, auth, "/auth/nginx")
    }

    /// Starts nginx in front of a constant response.
    ///
    /// # Errors
    /// A program does not start.
    pub fn with_constant(&self) -> Outcome<Proxy> {
        let auth = self.constant()?;
        self.proxy(tempfile::tempdir()?, auth, PATH)
    }

    fn constant(&self) -> Outcome<Server> {
        let mut command = self.cores.command(Role::Server, &self.constant);
        command.args(["127.0.0.1:0", PATH, BODY_BYTES]);
        Server::start(command, Address::Logged("http"))
    }

    fn proxy(&self, folder: TempDir, auth: Server, auth_path: &str) -> Outcome<Proxy> {
        let app = self.constant()?;
        let listen = Address::free()?;
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, configuration(listen, app.address(), auth.address(), auth_path))?;
        let mut command = self.cores.command(Role::Server, &self.nginx);
        command.arg("-p").arg(folder.path()).arg("-c").arg(file);
        // One process, whose CPU time is measured.
        command.args(["-e", "stderr", "-g", "daemon off; master_process off; pid nginx.pid;"]);
        let server = Server::start(command, Address::Fixed(listen))?;
        let protocol = vec![PROTOCOL.to_owned(), PATH.to_owned(), "{}".to_owned()];
        let requests = RequestSpec { protocol, keys: 1, rules: 1 };
        let candidate = Candidate { server, requests, config: None };
        Ok(Proxy { candidate, _servers: [auth, app], _folder: folder })
    }
}

/// The recipe of docs/PROXIES.md with open connections. The constant server accepts POST only.
fn configuration(listen: SocketAddr, app: SocketAddr, auth: SocketAddr, auth_path: &str) -> String {
    format!(
        "events {{ worker_connections 1024; }}
http {{
    access_log off; keepalive_requests 1000000000;
    upstream app {{ server {app}; keepalive 64; keepalive_requests 1000000000; }}
    upstream auth {{ server {auth}; keepalive 64; keepalive_requests 1000000000; }}
    proxy_http_version 1.1;
    server {{
        listen {listen};
        location / {{
            auth_request /tollgate;
            auth_request_set $limit_status $upstream_http_x_tollgate_status;
            auth_request_set $retry_after $upstream_http_retry_after;
            proxy_set_header Connection \"\";
            proxy_pass http://app;
        }}
        location = /tollgate {{
            internal;
            proxy_method POST;
            proxy_pass http://auth{auth_path};
            proxy_pass_request_body off;
            proxy_set_header Content-Length \"\";
            proxy_set_header Connection \"\";
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header X-Original-URI $request_uri;
            proxy_set_header X-Original-Method $request_method;
        }}
    }}
}}
"
    )
}
