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
/// Length of the app's response in bytes.
const APP_BODY_BYTES: &str = "64";
/// Length of the constant auth server's response: empty, as tollgate's. nginx closes the connection to an auth server
/// that sends a body, because it does not read it.
const AUTH_BODY_BYTES: &str = "0";
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
        let auth = self.constant(AUTH_BODY_BYTES)?;
        self.proxy(tempfile::tempdir()?, auth, PATH)
    }

    fn constant(&self, body_bytes: &str) -> Outcome<Server> {
        let mut command = self.cores.command(Role::Server, &self.constant);
        command.args(["127.0.0.1:0", PATH, body_bytes]);
        Server::start(command, Address::Logged("http"))
    }

    fn proxy(&self, folder: TempDir, auth: Server, auth_path: &str) -> Outcome<Proxy> {
        let app = self.constant(APP_BODY_BYTES)?;
        let listen = Address::free()?;
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, configuration(listen, app.address(), auth.address(), auth_path)?)?;
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

/// The example of docs/PROXIES.md.
const EXAMPLE: &str = include_str!("../../../examples/proxies/nginx.conf");

/// The example with these addresses, and with connections that stay open, as docs/PROXIES.md recommends for many requests.
fn configuration(
    listen: SocketAddr,
    app: SocketAddr,
    auth: SocketAddr,
    auth_path: &str,
) -> Outcome<String> {
    let upstream = |name: &str, server: SocketAddr| {
        format!(
            "upstream {name} {{ server {server}; keepalive 64; keepalive_requests 1000000000; }}"
        )
    };
    let (app, auth) = (upstream("app", app), upstream("auth", auth));
    let http = format!(
        "http {{\n    {app}\n    {auth}\n    keepalive_requests 1000000000;\n    \
         proxy_http_version 1.1; proxy_set_header Connection \"\";"
    );
    let reuse = "proxy_set_header Connection \"\"; proxy_set_header Content-Length \"\";";
    let replacements = [
        ("http {", http),
        ("127.0.0.1:10080", listen.to_string()),
        ("http://127.0.0.1:8000", "http://app".to_owned()),
        ("http://127.0.0.1:8080/auth/nginx", format!("http://auth{auth_path}")),
        // The headers of a location replace those of the http block.
        ("proxy_set_header Content-Length \"\";", reuse.to_owned()),
    ];
    let mut text = EXAMPLE.to_owned();
    for (old, new) in replacements {
        if text.matches(old).count() != 1 {
            return Err(format!("examples/proxies/nginx.conf does not contain {old:?} once").into());
        }
        text = text.replacen(old, &new, 1);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_is_the_example_with_open_connections() {
        let address = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let text = configuration(address(1), address(2), address(3), "/constant").unwrap();
        for expected in [
            "listen 127.0.0.1:1;",
            "upstream app { server 127.0.0.1:2; keepalive 64;",
            "proxy_pass http://app;",
            "upstream auth { server 127.0.0.1:3; keepalive 64;",
            "proxy_pass http://auth/constant;",
            "error_page 403 = @limited;",
        ] {
            assert!(text.contains(expected), "{expected} is missing in {text}");
        }
        assert!(!text.contains(":8080/auth"), "{text}");
    }
}
