//! The front ends of a node behind one interface: HTTP, RESP, gRPC and forward auth.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use tollgate_testkit::server::{Raw, Value};

use crate::canary::{CHECK_TOKEN, contains_secret};
use crate::client::{Client, Reply};
use crate::grpc::{GrpcClient, GrpcReply};
use crate::node::Node;

/// The domain of all descriptors, by which rules of a policy match gRPC requests.
pub const DOMAIN: &str = "faults";

/// The header that names the client in an auth request; see [`crate::policy::FRONT_ENDS`].
pub const CLIENT_HEADER: &str = "x-client";

/// Time-out of a reply: longer than any node may take.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A front end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrontEnd {
    /// `POST /check`.
    Http,
    /// `TOLLGATE.CHECK`.
    Resp,
    /// `ShouldRateLimit` of Envoy's rate limit service.
    Grpc,
    /// `GET /auth`.
    Auth,
}

impl FrontEnd {
    /// All front ends.
    pub const ALL: [Self; 4] = [Self::Http, Self::Resp, Self::Grpc, Self::Auth];

    /// The front ends besides HTTP, which [`crate::load::Load`] uses.
    pub const OTHERS: [Self; 3] = [Self::Resp, Self::Grpc, Self::Auth];

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Resp => "RESP",
            Self::Grpc => "gRPC",
            Self::Auth => "/auth",
        }
    }
}

/// A request to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The client.
    pub client: String,
    /// The path; empty for none.
    pub path: String,
}

impl Query {
    /// A query of a client, without a path.
    pub fn of(client: impl Into<String>) -> Self {
        Self { client: client.into(), path: String::new() }
    }

    /// A query of a client for a path.
    pub fn on(client: impl Into<String>, path: impl Into<String>) -> Self {
        Self { client: client.into(), path: path.into() }
    }

    fn body(&self) -> String {
        match self.path.as_str() {
            "" => json!({ "facts": { "client": self.client } }).to_string(),
            path => json!({ "facts": { "client": self.client, "path": path } }).to_string(),
        }
    }

    fn command(&self) -> Vec<String> {
        let mut words = vec!["TOLLGATE.CHECK".to_owned(), format!("client={}", self.client)];
        if !self.path.is_empty() {
            words.push(format!("path={}", self.path));
        }
        words
    }

    fn entries(&self) -> Vec<(&str, &str)> {
        let mut entries = vec![("client", self.client.as_str())];
        if !self.path.is_empty() {
            entries.push(("path", &self.path));
        }
        entries
    }

    fn auth_request(&self) -> Vec<u8> {
        let path = if self.path.is_empty() { "/" } else { &self.path };
        auth_request(&[
            ("x-forwarded-uri", path.as_bytes()),
            ("x-forwarded-method", b"GET"),
            (CLIENT_HEADER, self.client.as_bytes()),
        ])
    }
}

/// An auth request with these headers, and those that every proxy sends.
pub fn auth_request(headers: &[(&str, &[u8])]) -> Vec<u8> {
    auth_request_to("/auth", headers)
}

fn auth_request_to(endpoint: &str, headers: &[(&str, &[u8])]) -> Vec<u8> {
    let text = format!(
        "GET {endpoint} HTTP/1.1\r\nhost: tollgate\r\nx-tollgate-token: {CHECK_TOKEN}\r\n\
         x-forwarded-for: 203.0.113.7\r\nx-forwarded-host: app\r\n"
    );
    let mut bytes = text.into_bytes();
    for (name, value) in headers {
        bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    bytes.extend(b"\r\n");
    bytes
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The request is allowed.
    Allowed,
    /// The request is refused by a limit.
    Refused,
    /// The store is lost, and the rule has `on_store_loss: deny`.
    Unavailable,
    /// The request was shed.
    Shed,
    /// Any other error.
    Error(String),
}

/// An answer of any front end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The outcome.
    pub outcome: Outcome,
    /// The remaining quota, if the front end reports it.
    pub remaining: Option<u64>,
    /// Whether the decision is degraded; `None` if the front end does not report it.
    pub is_degraded: Option<bool>,
}

impl Answer {
    fn without_figures(outcome: Outcome) -> Self {
        Self { outcome, remaining: None, is_degraded: None }
    }

    /// Returns whether the request is allowed.
    pub fn is_allowed(&self) -> bool {
        self.outcome == Outcome::Allowed
    }

    fn from_http(reply: &Reply) -> Self {
        if reply.is_shed() {
            return Self::without_figures(Outcome::Shed);
        }
        let degraded = Some(reply.is_degraded());
        match reply.status {
            200 => {
                let remaining = reply.json()["remaining"].as_u64();
                let outcome = if reply.is_allowed() { Outcome::Allowed } else { Outcome::Refused };
                Self { outcome, remaining, is_degraded: degraded }
            }
            503 if reply.is_degraded() => {
                Self { outcome: Outcome::Unavailable, remaining: None, is_degraded: degraded }
            }
            status => Self::without_figures(Outcome::Error(format!("{status} {}", reply.body))),
        }
    }

    fn from_auth(reply: &Reply) -> Self {
        let remaining = reply.header("x-ratelimit-remaining").and_then(|text| text.parse().ok());
        let outcome = match reply.status {
            200 => Outcome::Allowed,
            429 => Outcome::Refused,
            503 if reply.body.contains("overloaded") => Outcome::Shed,
            503 if reply.header("retry-after").is_some() => Outcome::Unavailable,
            status => Outcome::Error(format!("{status} {}", reply.body)),
        };
        Self { outcome, remaining, is_degraded: None }
    }

    fn from_resp(reply: &Value) -> Self {
        if reply.is_error() {
            let text = reply.error();
            assert!(!contains_secret(text), "the reply contains a secret: {text}");
            return Self::without_figures(match text.split(' ').next() {
                Some("UNAVAILABLE") => Outcome::Unavailable,
                Some("OVERLOADED") => Outcome::Shed,
                _ => Outcome::Error(text.to_owned()),
            });
        }
        let fields = reply.array();
        let outcome = if fields[0].int() == 1 { Outcome::Allowed } else { Outcome::Refused };
        Self { outcome, remaining: fields[2].int().try_into().ok(), is_degraded: None }
    }

    fn from_grpc(reply: &GrpcReply) -> Self {
        match reply {
            GrpcReply::Decided { is_over, remaining } => {
                let outcome = if *is_over { Outcome::Refused } else { Outcome::Allowed };
                Self { outcome, remaining: Some(*remaining), is_degraded: None }
            }
            GrpcReply::Status { code: 14, message } if message.contains("overloaded") => {
                Self::without_figures(Outcome::Shed)
            }
            GrpcReply::Status { code: 14, .. } => Self::without_figures(Outcome::Unavailable),
            GrpcReply::Status { code, message } => {
                Self::without_figures(Outcome::Error(format!("status {code}: {message}")))
            }
        }
    }
}

/// A connection to one front end.
#[derive(Debug)]
pub enum Connection {
    /// HTTP.
    Http(Client),
    /// RESP, after `AUTH`.
    Resp(Raw),
    /// gRPC.
    Grpc(Box<GrpcClient>),
    /// Forward auth.
    Auth(Client),
}

impl Connection {
    /// Connects to the address of a front end.
    ///
    /// # Errors
    /// The connection is refused.
    pub fn open(front_end: FrontEnd, address: SocketAddr) -> io::Result<Self> {
        Ok(match front_end {
            FrontEnd::Http => Self::Http(Client::connect(address)?),
            FrontEnd::Auth => Self::Auth(Client::connect(address)?),
            FrontEnd::Grpc => Self::Grpc(Box::new(GrpcClient::connect(address)?)),
            FrontEnd::Resp => {
                let mut raw = Raw::try_connect(address.port())?.patient(TIMEOUT);
                // An error on a node without a check token, which needs no login.
                raw.try_call(&["AUTH", CHECK_TOKEN])?;
                Self::Resp(raw)
            }
        })
    }

    /// Sends a query and waits for the answer.
    ///
    /// # Errors
    /// There is no answer.
    pub fn check(&mut self, query: &Query) -> io::Result<Answer> {
        Ok(match self {
            Self::Http(client) => Answer::from_http(&client.post("/check", query.body())?),
            Self::Auth(client) => {
                client.write(&query.auth_request())?;
                Answer::from_auth(&client.receive()?)
            }
            Self::Resp(raw) => Answer::from_resp(&raw.try_call(&query.command())?),
            Self::Grpc(client) => Answer::from_grpc(&client.check(DOMAIN, &query.entries())?),
        })
    }
}

impl Node {
    /// The address of a front end.
    pub fn address_of(&self, front_end: FrontEnd) -> SocketAddr {
        match front_end {
            FrontEnd::Http | FrontEnd::Auth => self.address(),
            FrontEnd::Resp => self.listener("resp"),
            FrontEnd::Grpc => self.grpc_address(),
        }
    }

    /// Opens a RESP connection, after `AUTH`.
    pub fn resp(&self) -> Raw {
        match self.connect(FrontEnd::Resp) {
            Connection::Resp(raw) => raw,
            other => unreachable!("{other:?}"),
        }
    }

    /// Opens a gRPC connection.
    pub fn grpc(&self) -> GrpcClient {
        GrpcClient::connect(self.grpc_address()).expect("the node accepts connections")
    }

    /// Sends an auth request with these headers over a new connection.
    pub fn auth(&self, headers: &[(&str, &[u8])]) -> Reply {
        let mut client = self.client();
        client.write(&auth_request(headers)).expect("the node reads");
        client.receive().expect("the node responds")
    }

    /// Sends an auth request of nginx over a new connection. Returns the status, which is 403 for every refusal, and that of
    /// `X-Tollgate-Status`, which is for the client.
    pub fn auth_of_nginx(&self, query: &Query) -> (u16, Option<String>) {
        let mut client = self.client();
        let (path, name) = (query.path.as_bytes(), query.client.as_bytes());
        let headers =
            [("x-original-uri", path), ("x-original-method", &b"GET"[..]), (CLIENT_HEADER, name)];
        let request = auth_request_to("/auth/nginx", &headers);
        client.write(&request).expect("the node reads");
        let reply = client.receive().expect("the node responds");
        (reply.status, reply.header("x-tollgate-status").map(str::to_owned))
    }

    /// Opens a connection to a front end.
    pub fn connect(&self, front_end: FrontEnd) -> Connection {
        let connection = Connection::open(front_end, self.address_of(front_end));
        connection.unwrap_or_else(|error| panic!("{}: {error}", front_end.name()))
    }

    /// Sends a query to a front end over a new connection.
    pub fn check_over(&self, front_end: FrontEnd, query: &Query) -> Answer {
        let answer = self.connect(front_end).check(query);
        answer.unwrap_or_else(|error| panic!("{}: {error}", front_end.name()))
    }
}

#[cfg(test)]
mod tests {
    use tollgate_testkit::server::Value;

    use super::{Answer, GrpcReply, Outcome, Query};

    #[test]
    fn errors_of_a_lost_store_and_of_overload_differ() {
        let resp = |text: &str| Answer::from_resp(&Value::Error(text.to_owned())).outcome;
        assert_eq!(resp("UNAVAILABLE the store is lost"), Outcome::Unavailable);
        assert_eq!(resp("OVERLOADED too many"), Outcome::Shed);
        assert!(matches!(resp("ERR cost"), Outcome::Error(_)));
        let grpc = |code, text: &str| {
            Answer::from_grpc(&GrpcReply::Status { code, message: text.to_owned() }).outcome
        };
        assert_eq!(grpc(14, "the store is lost"), Outcome::Unavailable);
        assert_eq!(grpc(14, "overloaded: too many"), Outcome::Shed);
        assert!(matches!(grpc(3, "domain"), Outcome::Error(_)));
    }

    #[test]
    fn queries_without_a_path_have_no_path_fact() {
        let query = Query::of("c");
        assert_eq!(query.body(), r#"{"facts":{"client":"c"}}"#);
        assert_eq!(query.command(), ["TOLLGATE.CHECK", "client=c"]);
        assert_eq!(query.entries(), [("client", "c")]);
        assert_eq!(Query::on("c", "/x").command(), ["TOLLGATE.CHECK", "client=c", "path=/x"]);
    }
}
