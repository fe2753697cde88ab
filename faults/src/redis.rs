//! Redis servers that require the canary password.

use tollgate_testkit::proxy::Proxy;
use tollgate_testkit::server::{Builder, Flavor, Server};

use crate::canary::{PASSWORD, USER, login};

/// The rights of the user: everything. Other tests check the minimal rights.
const RIGHTS: [&str; 3] = ["~*", "&*", "+@all"];

/// A server that has the user, also after a restart. The harness itself connects without a login.
pub fn builder() -> Builder {
    let password = format!(">{PASSWORD}");
    let user = ["--user", USER, "on", &password].map(str::to_owned);
    Server::builder(Flavor::Redis).args(user).args(RIGHTS)
}

/// Starts a server.
pub fn start() -> Server {
    builder().start()
}

/// Adds the user to running servers, such as those of a cluster.
pub fn add_user(servers: &[Server]) {
    for server in servers {
        set_password(server, PASSWORD);
    }
}

/// Sets the only password of the user, for new connections.
pub fn set_password(server: &Server, password: &str) {
    let password = format!(">{password}");
    let user = ["ACL", "SETUSER", USER, "on", "resetpass", &password];
    let reply = server.raw().call(&[&user[..], &RIGHTS].concat());
    assert!(!reply.is_error(), "{reply:?}");
}

/// The URL of a server.
pub fn url(server: &Server) -> String {
    server.url_with(&login(), 0)
}

/// The URL of a server behind a proxy.
pub fn through(proxy: &Proxy) -> String {
    format!("redis://{}127.0.0.1:{}/0", login(), proxy.port())
}

/// A URL with the login added.
pub fn with_login(url: &str) -> String {
    url.replacen("://", &format!("://{}", login()), 1)
}

/// The number of calls of a command, as counted by the server.
pub fn calls(server: &Server, command: &str) -> u64 {
    let reply = server.raw().call(&["INFO", "commandstats"]);
    let prefix = format!("cmdstat_{command}:calls=");
    let count = reply.text().lines().find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
    count.map_or(0, |count| count.parse().expect("a number"))
}

/// The number of error replies with a prefix, such as `MOVED`, as counted by the server.
pub fn error_replies(server: &Server, prefix: &str) -> u64 {
    let reply = server.raw().call(&["INFO", "errorstats"]);
    let prefix = format!("errorstat_{prefix}:count=");
    let count = reply.text().lines().find_map(|line| line.strip_prefix(&prefix));
    count.map_or(0, |count| count.trim().parse().expect("a number"))
}

/// One value of `INFO`.
pub fn info(server: &Server, field: &str) -> u64 {
    let reply = server.raw().call(&["INFO", "everything"]);
    let prefix = format!("{field}:");
    let value = reply.text().lines().find_map(|line| line.strip_prefix(&prefix));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("INFO has no {field}"))
}
