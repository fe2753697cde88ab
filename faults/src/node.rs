//! A running `tollgate serve`. Dropping it records its output and stops it.

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

/// Paths whose responses must not contain a secret.
const PUBLIC_PATHS: [&str; 9] = [
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

/// An admin path that works without the store.
const ADMIN_PATH: &str = "/admin/overrides";

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
    /// Starts a node and waits until it listens.
    pub(crate) fn start(mut command: Command, witness: Witness) -> Self {
        witness.expect_tokens();
        let mut process = command.stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut stderr = BufReader::new(process.stderr.take().expect("stderr is piped"));
        let (mut output, mut address) = (String::new(), None);
        while address.is_none() {
            let mut line = String::new();
            let read = stderr.read_line(&mut line).expect("stderr is text");
            output.push_str(&line);
            assert_ne!(read, 0, "the node did not start: {output}");
            let at = line.trim().strip_prefix("listening on http://");
            address = at.map(|address| address.parse().expect("an address"));
        }
        let log = Arc::new(Mutex::new(output));
        let reader = Some(follow(stderr, Arc::clone(&log)));
        Self { process, address: address.expect("just found"), log, reader, witness }
    }

    /// The address of the HTTP listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the gRPC listener, which `grpc` in the settings starts.
    pub fn grpc_address(&self) -> SocketAddr {
        self.listener("grpc")
    }

    /// The address of a listener in the log, by its scheme.
    pub(crate) fn listener(&self, scheme: &str) -> SocketAddr {
        let begin = format!("listening on {scheme}://");
        let find = || {
            let log = self.log();
            // A line without its end may be incomplete.
            let lines = log.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
            let mut addresses = lines.filter_map(|line| line.strip_prefix(&begin));
            addresses.next().map(|address| address.parse().expect("an address"))
        };
        eventually("the listener", || find().is_some());
        find().expect("just seen")
    }

    /// Opens a connection.
    pub fn client(&self) -> Client {
        Client::connect(self.address).expect("the node accepts connections")
    }

    /// Posts a body over a new connection.
    pub fn post(&self, path: &str, json: impl AsRef<[u8]>) -> Reply {
        self.client().post(path, json).expect("the node responds")
    }

    /// Gets a path over a new connection.
    pub fn get(&self, path: &str) -> Reply {
        self.client().get(path).expect("the node responds")
    }

    /// Sends a check of cost 1 for a client.
    pub fn check(&self, client: &str) -> Reply {
        self.post("/check", key(client))
    }

    /// The usage of a limit as the store counts it; `None` in degraded mode.
    pub fn count(&self, body: &str) -> Option<u64> {
        let reply = self.post("/peek", body);
        if reply.is_exact() { reply.json()["count"].as_u64() } else { None }
    }

    /// The response of `/api/status`.
    pub fn status(&self) -> Value {
        self.get("/api/status").json()
    }

    /// The store warning in the status.
    pub fn warning(&self) -> Option<String> {
        self.status()["store"]["warning"].as_str().map(str::to_owned)
    }

    /// The value of one metric series.
    pub fn metric(&self, series: &str) -> f64 {
        let text = self.get("/metrics").body;
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        let value = line.and_then(|value| value.parse().ok());
        value.unwrap_or_else(|| panic!("no metric {series}"))
    }

    /// The number of failed store calls.
    pub fn errors(&self) -> f64 {
        self.metric("rate_limit_backend_errors_total")
    }

    /// Waits until the store decides. Returns the waiting time.
    pub fn wait_exact(&self) -> Duration {
        let began = Instant::now();
        let mut client = self.client();
        eventually("the store decides", || {
            client.post("/peek", key("waiting")).is_ok_and(|reply| reply.is_exact())
        });
        began.elapsed()
    }

    /// Waits until the node decides in degraded mode. Returns the waiting time.
    pub fn wait_degraded(&self) -> Duration {
        let began = Instant::now();
        let mut client = self.client();
        eventually("the node decides without its store", || {
            client.post("/check", key("waiting")).is_ok_and(|reply| reply.is_degraded())
        });
        began.elapsed()
    }

    /// The log so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The number of log lines that contain all of these words.
    pub fn logged(&self, words: &[&str]) -> usize {
        let has_all = |line: &&str| words.iter().all(|word| line.contains(word));
        self.log().lines().filter(has_all).count()
    }

    /// The resident memory in bytes.
    pub fn rss(&self) -> u64 {
        process_stats::rss(self.process.id())
    }

    /// The peak resident memory in bytes.
    pub fn peak(&self) -> u64 {
        process_stats::peak(self.process.id())
    }

    /// The CPU time so far.
    pub fn cpu(&self) -> Duration {
        process_stats::cpu(self.process.id())
    }

    /// The number of open files and connections.
    pub fn files(&self) -> usize {
        process_stats::files(self.process.id())
    }

    /// Limits the number of open files and connections.
    pub fn limit_files(&self, max: usize) {
        let process = format!("--pid={}", self.process.id());
        let limit = format!("--nofile={max}:{max}");
        let set = Command::new("prlimit").args([process, limit]).status();
        assert!(set.expect("prlimit is missing; install util-linux").success());
    }

    /// Sends SIGTERM and waits for the exit. Returns the exit code and the log.
    pub fn stop(mut self) -> (Option<i32>, String) {
        self.signal("TERM");
        let status = self.process.wait().expect("the process was started");
        let _ = self.reader.take().map(JoinHandle::join);
        (status.code(), self.log())
    }

    /// Kills the node with SIGKILL.
    pub fn kill(mut self) {
        self.process.kill().expect("the process runs");
        self.process.wait().expect("the process was started");
    }

    /// Sends a request with any method over a new connection.
    pub fn request(&self, method: &str, path: &str, json: impl AsRef<[u8]>) -> Reply {
        let mut client = self.client();
        client.request(method, path, json).expect("the node reads");
        client.receive().expect("the node responds")
    }

    /// Suspends the process with SIGSTOP.
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Resumes the process.
    pub fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let script = format!("kill -{name} {}", self.process.id());
        let sent = Command::new("sh").args(["-c", &script]).status().expect("run sh");
        assert!(sent.success(), "{script}");
    }

    /// Records the responses of all public paths, if the node still responds.
    fn record_responses(&self) {
        let Ok(mut client) = Client::connect(self.address) else { return };
        let status_of = |reply: io::Result<Reply>, origin: &str| {
            let reply = reply.ok()?;
            self.witness.record(origin, reply.head + &reply.body);
            Some(reply.status)
        };
        for path in PUBLIC_PATHS {
            if status_of(client.get(path), path).is_none() {
                return;
            }
        }
        let is_accepted = status_of(client.get(ADMIN_PATH), ADMIN_PATH) == Some(200);
        let wrong = client.get_with_token(WRONG_TOKEN, ADMIN_PATH);
        if status_of(wrong, "a refused token") == Some(401) && is_accepted {
            self.witness.tokens_checked();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let is_running = matches!(self.process.try_wait(), Ok(None));
        if is_running && !thread::panicking() {
            self.record_responses();
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = self.reader.take().map(JoinHandle::join);
        self.witness.record("the log of a node", self.log());
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
