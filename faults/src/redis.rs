//! Servers that ask for the canary.

use tollgate_testkit::proxy::Proxy;
use tollgate_testkit::server::{Builder, Flavor, Server};

use crate::canary::{PASSWORD, USER, login};

/// What the user may do: everything. What little ours needs is for other tests.
const RIGHTS: [&str; 3] = ["~*", "&*", "+@all"];

/// A server that knows the user, also after a restart. Who does not log in may ask too: the harness itself.
pub fn builder() -> Builder {
    let password = format!(">{PASSWORD}");
    let user = ["--user", USER, "on", &password].map(str::to_owned);
    Server::builder(Flavor::Redis).args(user).args(RIGHTS)
}

/// One as it is by itself.
pub fn start() -> Server {
    builder().start()
}

/// Teaches the user to servers that run; how one of a cluster is made to ask for the canary.
pub fn admit(servers: &[Server]) {
    for server in servers {
        set_password(server, PASSWORD);
    }
}

/// Makes this the user's only password, for connections to come.
pub fn set_password(server: &Server, password: &str) {
    let password = format!(">{password}");
    let user = ["ACL", "SETUSER", USER, "on", "resetpass", &password];
    let answer = server.raw().call(&[&user[..], &RIGHTS].concat());
    assert!(!answer.is_error(), "{answer:?}");
}

/// The address of a server.
pub fn url(server: &Server) -> String {
    server.url_with(&login(), 0)
}

/// The address of a server behind a proxy.
pub fn through(proxy: &Proxy) -> String {
    format!("redis://{}127.0.0.1:{}/0", login(), proxy.port())
}

/// An address with the login put in.
pub fn logged_in(url: &str) -> String {
    url.replacen("://", &format!("://{}", login()), 1)
}

/// How often a command was run, by the server's own count.
pub fn calls(server: &Server, command: &str) -> u64 {
    let told = server.raw().call(&["INFO", "commandstats"]);
    let begin = format!("cmdstat_{command}:calls=");
    let count = told.text().lines().find_map(|line| line.strip_prefix(&begin)?.split(',').next());
    count.map_or(0, |count| count.parse().expect("a number"))
}

/// One figure of `INFO`.
pub fn info(server: &Server, field: &str) -> u64 {
    let told = server.raw().call(&["INFO", "everything"]);
    let begin = format!("{field}:");
    let value = told.text().lines().find_map(|line| line.strip_prefix(&begin));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {field}"))
}
