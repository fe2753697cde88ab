//! A primary with replicas, and sentinels that replace it when it dies.

use std::time::Duration;

use super::{Flavor, Server, Value};
use crate::wait::{eventually, retry_until};

/// What sentinels call the primary.
const NAME: &str = "mymaster";

/// How many agree that the primary is dead.
const QUORUM: usize = 2;

/// How long a failover that was asked for may take before it is asked for again.
const FAILOVER: Duration = Duration::from_secs(10);

/// Milliseconds, where a sentinel by itself takes its time: ten seconds to look again, two to tell the
/// others. A machine that stops for a while does not make it wait for half a minute.
const HASTE: [(&str, &str); 6] = [
    ("INFO-PERIOD", "500"),
    ("PING-PERIOD", "200"),
    ("ASK-PERIOD", "200"),
    ("PUBLISH-PERIOD", "200"),
    ("TILT-TRIGGER", "30000"),
    ("TILT-PERIOD", "1000"),
];

/// One primary, two replicas and three sentinels. All are killed, hung and restarted as any [`Server`].
///
/// A primary that restarts is empty and a primary still, until the sentinels have told it otherwise, some
/// seconds later; replicas come back as what they were. Sentinels that restart are slower than before.
#[derive(Debug)]
pub struct Sentinels {
    nodes: Vec<Server>,
    sentinels: Vec<Server>,
}

impl Sentinels {
    /// Starts them. All is well when it returns.
    ///
    /// # Panics
    /// If it does not come to be.
    pub fn start(flavor: Flavor) -> Self {
        let settings = ["--repl-diskless-sync-delay", "0"];
        // With a file, so that they keep whom they copy.
        let node = || Server::builder(flavor).config("").args(settings).start();
        let nodes = [node(), node(), node()];
        let port = nodes[0].port().to_string();
        for replica in &nodes[1..] {
            replica.raw().call(&["REPLICAOF", "127.0.0.1", &port]);
            replica.raw().call(&["CONFIG", "REWRITE"]);
        }
        // Before anybody watches: what sentinels find out at first they look at again much later.
        eventually("replicas have the data", || nodes[1..].iter().all(|node| copies(node, &port)));
        let sentinel = || Server::builder(flavor).config(&watching(&port)).sentinel().start();
        let all = Self { sentinels: vec![sentinel(), sentinel(), sentinel()], nodes: nodes.into() };
        for sentinel in &all.sentinels {
            let periods = HASTE.into_iter().flat_map(|(name, value)| [name, value]);
            let words = ["SENTINEL", "DEBUG"].into_iter().chain(periods).collect::<Vec<_>>();
            let hurries = sentinel.raw().call(&words);
            assert_eq!(hurries, Value::Simple("OK".to_owned()), "a sentinel makes no haste");
        }
        all.wait_ok();
        all
    }

    /// Its address for clients.
    pub fn url(&self) -> String {
        let all = self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port()));
        format!("redis+sentinel://{}/{NAME}", all.collect::<Vec<_>>().join(","))
    }

    /// Primary and replicas. The primary is the first only until there is another.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// The sentinels.
    pub fn sentinels(&self) -> &[Server] {
        &self.sentinels
    }

    /// Who is primary by the sentinels that are up, be it dead; waits while they do not agree.
    pub fn primary(&self) -> &Server {
        let mut found = None;
        eventually("sentinels agree on the primary", || {
            found = self.agreed();
            found.is_some()
        });
        found.expect("it was found")
    }

    /// The nodes that are up and not primary.
    pub fn replicas(&self) -> Vec<&Server> {
        let port = self.primary().port();
        self.nodes.iter().filter(|node| node.port() != port && node.is_up()).collect()
    }

    /// Kills the primary, and tells which it was. Sentinels will not know for a second.
    pub fn kill_primary(&self) -> &Server {
        let primary = self.primary();
        primary.kill();
        primary
    }

    /// Makes a replica primary though nobody died, and tells which.
    ///
    /// # Panics
    /// If it does not become so.
    pub fn failover(&self) -> &Server {
        let old = self.primary();
        let asked = self.sentinels.iter().find(|sentinel| sentinel.is_up());
        let asked = asked.expect("a sentinel is up");
        let ask = || drop(asked.raw().call(&["SENTINEL", "FAILOVER", NAME]));
        retry_until("a sentinel made another primary", FAILOVER, ask, || {
            told_by(asked).is_some_and(|port| port != old.port())
        });
        self.wait_for_new_primary(old)
    }

    /// Waits until the sentinels agree on another primary, and it is one.
    ///
    /// # Panics
    /// If they do not.
    pub fn wait_for_new_primary(&self, old: &Server) -> &Server {
        let mut found = None;
        eventually("there is another primary", || {
            found = self.agreed().filter(|new| new.port() != old.port() && is_primary(new));
            found.is_some()
        });
        found.expect("it was found")
    }

    /// From now on the sentinels take nobody for dead who is merely silent, be it that they are halted themselves.
    pub fn keep_primary(&self) {
        for sentinel in self.sentinels.iter().filter(|sentinel| sentinel.is_up()) {
            sentinel.raw().call(&["SENTINEL", "SET", NAME, "down-after-milliseconds", "600000"]);
        }
    }

    /// Waits until all nodes that are up copy one primary and have its data, and all sentinels that are up
    /// know all of them.
    ///
    /// # Panics
    /// If that does not come to be.
    pub fn wait_ok(&self) {
        eventually("the primary, its replicas and the sentinels are well", || self.is_ok());
    }

    /// Whom all sentinels that are up take for the primary.
    fn agreed(&self) -> Option<&Server> {
        let mut up = self.sentinels.iter().filter(|sentinel| sentinel.is_up());
        let port = told_by(up.next()?)?;
        let is_agreed = up.all(|sentinel| told_by(sentinel) == Some(port));
        self.nodes.iter().find(|node| is_agreed && node.port() == port)
    }

    fn is_ok(&self) -> bool {
        let Some(primary) = self.agreed().filter(|node| is_primary(node)) else { return false };
        let port = primary.port().to_string();
        let replicas = self.nodes.iter().filter(|node| node.port() != primary.port());
        let replicas = replicas.filter(|node| node.is_up()).collect::<Vec<_>>();
        let mut watching = self.sentinels.iter().filter(|sentinel| sentinel.is_up());
        replicas.iter().all(|node| copies(node, &port))
            && watching.all(|sentinel| self.is_informed(sentinel, &replicas, &port))
    }

    /// Whether a sentinel doubts nothing, and knows the others and the replicas as they are.
    fn is_informed(&self, sentinel: &Server, replicas: &[&Server], primary: &str) -> bool {
        let Some(master) = sentinel.try_call(&["SENTINEL", "MASTER", NAME]) else { return false };
        let Some(known) = sentinel.try_call(&["SENTINEL", "REPLICAS", NAME]) else { return false };
        let others = (self.sentinels.len() - 1).to_string();
        let knows = |replica: &&Server| {
            let port = replica.port().to_string();
            let facts = [
                ("port", port.as_str()),
                ("flags", "slave"),
                ("master-link-status", "ok"),
                ("master-port", primary),
            ];
            known.array().iter().any(|entry| says(entry, &facts))
        };
        says(&master, &[("flags", "master"), ("num-other-sentinels", &others)])
            && replicas.iter().all(knows)
    }
}

fn watching(port: &str) -> String {
    format!(
        "sentinel monitor {NAME} 127.0.0.1 {port} {QUORUM}\n\
         sentinel down-after-milliseconds {NAME} 1000\n\
         sentinel failover-timeout {NAME} 3000\n\
         sentinel parallel-syncs {NAME} 2\n"
    )
}

/// The primary's port by a sentinel.
fn told_by(sentinel: &Server) -> Option<u16> {
    let answer = sentinel.try_call(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME])?;
    answer.array().get(1)?.text().parse().ok()
}

fn is_primary(node: &Server) -> bool {
    has_lines(node, &["role:master"])
}

/// Whether a node has the data of the one at a port.
fn copies(node: &Server, primary: &str) -> bool {
    let whom = format!("master_port:{primary}");
    has_lines(node, &["role:slave", &whom, "master_link_status:up"])
}

fn has_lines(node: &Server, lines: &[&str]) -> bool {
    let told = node.try_call(&["INFO", "replication"]);
    told.is_some_and(|told| lines.iter().all(|line| told.text().lines().any(|own| own == *line)))
}

/// Whether keys and values in turn contain these.
fn says(entry: &Value, facts: &[(&str, &str)]) -> bool {
    let pairs = entry.array().chunks(2).map(|pair| (pair[0].text(), pair[1].text()));
    let pairs = pairs.collect::<Vec<_>>();
    facts.iter().all(|fact| pairs.contains(fact))
}
