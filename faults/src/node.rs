//! One `tollgate serve`: stopped when it is dropped, after all that it says was heard.

use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use tollgate_testkit::process_stats;
use tollgate_testkit::wait::eventually;

use crate::canary::{WRONG_TOKEN, Witness};
use crate::client::{Client, Reply, key};

/// What a node tells of itself, and may not tell a secret by.
const TELLING: [&str; 9] = [
    "/metrics",
    "/api/status",
    "/api/nodes",
    "/api/limits",
    "/api/counters",
    "/api/blocks",
    "/admin/audit",
    "/admin/external/clients/k/limits",
    "/admin/external/clients/k/stats",
];

/// What a node knows by heart of what administrators did, whatever else is lost.
const ADMINISTERED: &str = "/admin/overrides";

/// A running node.
#[derive(Debug)]
pub struct Node {
    process: Child,
    address: SocketAddr,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
    witness: Witness,
}

impl Node {
    /// Starts it, and waits until it listens.
    pub(crate) fn start(mut command: Command, witness: Witness) -> Self {
        witness.guard();
        let mut process = command.stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut stderr = BufReader::new(process.stderr.take().expect("it is piped"));
        let (mut told, mut address) = (String::new(), None);
        while address.is_none() {
            let mut line = String::new();
            let read = stderr.read_line(&mut line).expect("stderr is text");
            told.push_str(&line);
            assert_ne!(read, 0, "a node did not start: {told}");
            let at = line.trim().strip_prefix("listening on http://");
            address = at.map(|address| address.parse().expect("an address"));
        }
        let log = Arc::new(Mutex::new(told));
        let reader = Some(follow(stderr, Arc::clone(&log)));
        Self { process, address: address.expect("just found"), log, reader, witness }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A connection of its own.
    pub fn client(&self) -> Client {
        Client::connect(self.address).expect("a node accepts connections")
    }

    /// One question on a connection of its own.
    pub fn post(&self, path: &str, json: impl AsRef<[u8]>) -> Reply {
        self.client().post(path, json).expect("a node answers")
    }

    /// A page.
    pub fn get(&self, path: &str) -> Reply {
        self.client().get(path).expect("a node answers")
    }

    /// Takes one for a client.
    pub fn check(&self, client: &str) -> Reply {
        self.post("/check", key(client))
    }

    /// What is used of a client's limit by now, by the store itself.
    pub fn count(&self, question: &str) -> Option<u64> {
        let reply = self.post("/peek", question);
        if reply.is_exact() { reply.json()["count"].as_u64() } else { None }
    }

    /// How it fares.
    pub fn status(&self) -> Value {
        self.get("/api/status").json()
    }

    /// What an operator is told of the store, if anything.
    pub fn warning(&self) -> Option<String> {
        self.status()["store"]["warning"].as_str().map(str::to_owned)
    }

    /// One figure of its metrics.
    pub fn metric(&self, series: &str) -> f64 {
        let text = self.get("/metrics").body;
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        let value = line.and_then(|value| value.parse().ok());
        value.unwrap_or_else(|| panic!("there is no metric {series}"))
    }

    /// Questions that the store did not answer.
    pub fn errors(&self) -> f64 {
        self.metric("rate_limit_backend_errors_total")
    }

    /// Waits until the store decides, and nothing else; how long that took.
    pub fn wait_exact(&self) -> Duration {
        let began = Instant::now();
        let mut client = self.client();
        eventually("the store decides", || {
            client.post("/peek", key("nobody")).is_ok_and(|reply| reply.is_exact())
        });
        began.elapsed()
    }

    /// Waits until the store is done without; how long that took.
    pub fn wait_degraded(&self) -> Duration {
        let began = Instant::now();
        let mut client = self.client();
        eventually("a node does without its store", || {
            client.post("/check", key("nobody")).is_ok_and(|reply| reply.is_degraded())
        });
        began.elapsed()
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many lines of its log have all of these words.
    pub fn logged(&self, words: &[&str]) -> usize {
        let has_all = |line: &&str| words.iter().all(|word| line.contains(word));
        self.log().lines().filter(has_all).count()
    }

    /// The bytes of memory it holds.
    pub fn rss(&self) -> u64 {
        process_stats::rss(self.process.id())
    }

    /// The most bytes of memory it ever held.
    pub fn peak(&self) -> u64 {
        process_stats::peak(self.process.id())
    }

    /// The processor time it took so far.
    pub fn cpu(&self) -> Duration {
        process_stats::cpu(self.process.id())
    }

    /// How many files and connections it has open.
    pub fn files(&self) -> usize {
        process_stats::files(self.process.id())
    }

    /// Lets it have no more files and connections than this at a time.
    pub fn limit_files(&self, most: usize) {
        let process = format!("--pid={}", self.process.id());
        let limit = format!("--nofile={most}:{most}");
        let set = Command::new("prlimit").args([process, limit]).status();
        assert!(set.expect("there is prlimit, of util-linux").success());
    }

    /// Asks it to end and waits until it has: its exit code, and all that it logged.
    pub fn end(mut self) -> (Option<i32>, String) {
        self.signal("TERM");
        let status = self.process.wait().expect("it was started");
        let _ = self.reader.take().map(JoinHandle::join);
        (status.code(), self.log())
    }

    /// Kills it, at once and without a word.
    pub fn kill(mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it was started");
    }

    /// Asks by any method on a connection of its own.
    pub fn ask(&self, method: &str, path: &str, json: impl AsRef<[u8]>) -> Reply {
        let mut client = self.client();
        client.request(method, path, json).expect("a node reads");
        client.receive().expect("a node answers")
    }

    /// Stops it where it is.
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let script = format!("kill -{name} {}", self.process.id());
        let sent = Command::new("sh").args(["-c", &script]).status().expect("there is a shell");
        assert!(sent.success(), "{script}");
    }

    /// Whatever it tells about itself, if it still does.
    fn tell_all(&self) {
        let Ok(mut client) = Client::connect(self.address) else { return };
        let status_of = |told: io::Result<Reply>, by: &str| {
            let reply = told.ok()?;
            self.witness.hear(by, reply.head + &reply.body);
            Some(reply.status)
        };
        for path in TELLING {
            if status_of(client.get(path), path).is_none() {
                return;
            }
        }
        let is_let_in = status_of(client.get(ADMINISTERED), ADMINISTERED) == Some(200);
        let wrong = client.get_by(WRONG_TOKEN, ADMINISTERED);
        if status_of(wrong, "a door that stayed shut") == Some(401) && is_let_in {
            self.witness.see_guard();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let is_there = matches!(self.process.try_wait(), Ok(None));
        if is_there && !thread::panicking() {
            self.tell_all();
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = self.reader.take().map(JoinHandle::join);
        self.witness.hear("the log of a node", self.log());
    }
}

fn follow(mut stderr: BufReader<ChildStderr>, log: Arc<Mutex<String>>) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(read @ 1..) = stderr.read(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
            log.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
        }
    })
}
