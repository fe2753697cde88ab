//! A primary with replicas, and sentinels that replace it when it dies.

use std::time::Duration;

use super::{Flavor, Server, Value};
use crate::wait::{eventually, retry_until};

/// The name of the primary.
const NAME: &str = "mymaster";

/// The number of sentinels that must agree that the primary is down.
const QUORUM: usize = 2;

/// The time after which a requested failover is requested again.
const FAILOVER_RETRY: Duration = Duration::from_secs(10);

/// Sentinel periods in milliseconds, much shorter than the defaults (ten seconds between INFO calls, two between
/// publications). With a longer tilt trigger, a paused machine does not cost half a minute.
const PERIODS: [(&str, &str); 6] = [
    ("INFO-PERIOD", "500"),
    ("PING-PERIOD", "200"),
    ("ASK-PERIOD", "200"),
    ("PUBLISH-PERIOD", "200"),
    ("TILT-TRIGGER", "30000"),
    ("TILT-PERIOD", "1000"),
];

/// One primary, two replicas and three sentinels. Each can be killed, hung and restarted as any [`Server`].
///
/// A restarted primary is empty and still a primary until the sentinels reconfigure it some seconds later. A restarted
/// replica stays a replica. A restarted sentinel uses the default periods, so it is slower.
#[derive(Debug)]
pub struct Sentinels {
    nodes: Vec<Server>,
    sentinels: Vec<Server>,
}

impl Sentinels {
    /// Starts all servers, and waits until replication and sentinels are ready.
    ///
    /// # Panics
    /// After [`MAX_WAIT`](crate::wait::MAX_WAIT).
    pub fn start(flavor: Flavor) -> Self {
        let settings = ["--repl-diskless-sync-delay", "0"];
        // With a config file, so that a replica keeps its primary over a restart.
        let node = || Server::builder(flavor).config("").args(settings).start();
        let nodes = [node(), node(), node()];
        let port = nodes[0].port().to_string();
        for replica in &nodes[1..] {
            replica.raw().call(&["REPLICAOF", "127.0.0.1", &port]);
            replica.raw().call(&["CONFIG", "REWRITE"]);
        }
        // Before the sentinels start, because they refresh their first view only much later.
        eventually("replicas have the data", || {
            nodes[1..].iter().all(|node| replicates(node, &port))
        });
        let sentinel =
            || Server::builder(flavor).config(&sentinel_config(&port)).sentinel().start();
        let all = Self { sentinels: vec![sentinel(), sentinel(), sentinel()], nodes: nodes.into() };
        for sentinel in &all.sentinels {
            let periods = PERIODS.into_iter().flat_map(|(name, value)| [name, value]);
            let words = ["SENTINEL", "DEBUG"].into_iter().chain(periods).collect::<Vec<_>>();
            let reply = sentinel.raw().call(&words);
            assert_eq!(reply, Value::Simple("OK".to_owned()), "a sentinel refuses the periods");
        }
        all.wait_ok();
        all
    }

    /// Returns the URL for clients.
    pub fn url(&self) -> String {
        let all = self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port()));
        format!("redis+sentinel://{}/{NAME}", all.collect::<Vec<_>>().join(","))
    }

    /// Returns primary and replicas. The primary is the first until the first failover.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// Returns the sentinels.
    pub fn sentinels(&self) -> &[Server] {
        &self.sentinels
    }

    /// Returns the primary (running or not) according to the running sentinels. Waits until they agree.
    pub fn primary(&self) -> &Server {
        let mut found = None;
        eventually("sentinels agree on the primary", || {
            found = self.agreed_primary();
            found.is_some()
        });
        found.expect("the wait found it")
    }

    /// Returns the running nodes that are not primary.
    pub fn replicas(&self) -> Vec<&Server> {
        let port = self.primary().port();
        self.nodes.iter().filter(|node| node.port() != port && node.is_up()).collect()
    }

    /// Kills the primary and returns it. Sentinels notice after one second.
    pub fn kill_primary(&self) -> &Server {
        let primary = self.primary();
        primary.kill();
        primary
    }

    /// Promotes a replica while the primary runs. Returns the new primary.
    ///
    /// # Panics
    /// If the failover does not succeed in time.
    pub fn failover(&self) -> &Server {
        let old = self.primary();
        let sentinel = self.sentinels.iter().find(|sentinel| sentinel.is_up());
        let sentinel = sentinel.expect("a sentinel is up");
        let request = || drop(sentinel.raw().call(&["SENTINEL", "FAILOVER", NAME]));
        retry_until("a sentinel promoted a replica", FAILOVER_RETRY, request, || {
            primary_port(sentinel).is_some_and(|port| port != old.port())
        });
        self.wait_for_new_primary(old)
    }

    /// Waits until the sentinels agree on another primary than `old`, and it has that role.
    ///
    /// # Panics
    /// If they do not agree in time.
    pub fn wait_for_new_primary(&self, old: &Server) -> &Server {
        let mut found = None;
        eventually("sentinels agree on a new primary", || {
            found = self.agreed_primary().filter(|new| new.port() != old.port() && is_primary(new));
            found.is_some()
        });
        found.expect("the wait found it")
    }

    /// Disables failover on time-outs, also those caused by a pause of the sentinels themselves.
    pub fn keep_primary(&self) {
        for sentinel in self.sentinels.iter().filter(|sentinel| sentinel.is_up()) {
            sentinel.raw().call(&["SENTINEL", "SET", NAME, "down-after-milliseconds", "600000"]);
        }
    }

    /// Waits until all running nodes replicate one primary and have its data, and all running sentinels know all of
    /// them.
    ///
    /// # Panics
    /// If that does not happen in time.
    pub fn wait_ok(&self) {
        eventually("the primary, its replicas and the sentinels are ready", || self.is_ok());
    }

    /// Returns the primary if all running sentinels agree on it.
    fn agreed_primary(&self) -> Option<&Server> {
        let mut up = self.sentinels.iter().filter(|sentinel| sentinel.is_up());
        let port = primary_port(up.next()?)?;
        let is_agreed = up.all(|sentinel| primary_port(sentinel) == Some(port));
        self.nodes.iter().find(|node| is_agreed && node.port() == port)
    }

    fn is_ok(&self) -> bool {
        let Some(primary) = self.agreed_primary().filter(|node| is_primary(node)) else {
            return false;
        };
        let port = primary.port().to_string();
        let replicas = self.nodes.iter().filter(|node| node.port() != primary.port());
        let replicas = replicas.filter(|node| node.is_up()).collect::<Vec<_>>();
        let mut running = self.sentinels.iter().filter(|sentinel| sentinel.is_up());
        replicas.iter().all(|node| replicates(node, &port))
            && running.all(|sentinel| self.is_up_to_date(sentinel, &replicas, &port))
    }

    /// Returns whether a sentinel sees the primary as up and knows the other sentinels and all replicas.
    fn is_up_to_date(&self, sentinel: &Server, replicas: &[&Server], primary: &str) -> bool {
        let Some(master) = sentinel.try_call(&["SENTINEL", "MASTER", NAME]) else { return false };
        let Some(known) = sentinel.try_call(&["SENTINEL", "REPLICAS", NAME]) else { return false };
        let other_sentinels = (self.sentinels.len() - 1).to_string();
        let knows = |replica: &&Server| {
            let port = replica.port().to_string();
            let facts = [
                ("port", port.as_str()),
                ("flags", "slave"),
                ("master-link-status", "ok"),
                ("master-port", primary),
            ];
            known.array().iter().any(|entry| has_fields(entry, &facts))
        };
        has_fields(&master, &[("flags", "master"), ("num-other-sentinels", &other_sentinels)])
            && replicas.iter().all(knows)
    }
}

fn sentinel_config(port: &str) -> String {
    format!(
        "sentinel monitor {NAME} 127.0.0.1 {port} {QUORUM}\n\
         sentinel down-after-milliseconds {NAME} 1000\n\
         sentinel failover-timeout {NAME} 3000\n\
         sentinel parallel-syncs {NAME} 2\n"
    )
}

/// Returns the port of the primary according to a sentinel.
fn primary_port(sentinel: &Server) -> Option<u16> {
    let reply = sentinel.try_call(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME])?;
    reply.array().get(1)?.text().parse().ok()
}

fn is_primary(node: &Server) -> bool {
    has_lines(node, &["role:master"])
}

/// Returns whether a node replicates the primary at a port and has its data.
fn replicates(node: &Server, primary: &str) -> bool {
    let port = format!("master_port:{primary}");
    has_lines(node, &["role:slave", &port, "master_link_status:up"])
}

/// Returns whether `INFO replication` of a node contains all lines.
fn has_lines(node: &Server, lines: &[&str]) -> bool {
    let reply = node.try_call(&["INFO", "replication"]);
    let has = |reply: &Value, line: &str| reply.text().lines().any(|found| found == line);
    reply.is_some_and(|reply| lines.iter().all(|line| has(&reply, line)))
}

/// Returns whether an array of alternating keys and values contains these pairs.
fn has_fields(entry: &Value, facts: &[(&str, &str)]) -> bool {
    let pairs = entry.array().chunks(2).map(|pair| (pair[0].text(), pair[1].text()));
    let pairs = pairs.collect::<Vec<_>>();
    facts.iter().all(|fact| pairs.contains(fact))
}
