//! Settings of a node before it starts.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use tollgate_testkit::clock::Clock;

use crate::canary::TOKENS;
use crate::fleet::Fleet;
use crate::memory_cap::MemoryCap;
use crate::node::Node;
use crate::stage::Stage;

/// Settings of a node, passed in its environment: arguments are visible to other users, and an older binary
/// ignores variables that it does not know.
#[derive(Debug)]
pub struct Setup<'a> {
    stage: &'a Stage,
    environment: Vec<(String, OsString)>,
    cap: Option<&'a MemoryCap>,
}

impl Stage {
    /// The settings of a node, to be started.
    pub fn node(&self) -> Setup<'_> {
        Setup::new(self)
    }
}

impl<'a> Setup<'a> {
    fn new(stage: &'a Stage) -> Self {
        let tokens = TOKENS.map(|(name, token)| (name.to_owned(), token.into()));
        Self { stage, environment: tokens.into(), cap: None }.with("http", "127.0.0.1:0")
    }

    /// Without a check token: any client may send checks.
    #[must_use]
    pub fn open(mut self) -> Self {
        self.environment.retain(|(name, _)| name != "TOLLGATE_CHECK_TOKEN");
        self
    }

    /// Adds a setting by the name of its flag, such as `"redis-timeout-ms"`.
    #[must_use]
    pub fn with(self, flag: &str, value: impl Into<OsString>) -> Self {
        let name = format!("TOLLGATE_{}", flag.replace('-', "_").to_ascii_uppercase());
        self.variable(&name, value)
    }

    /// Also listens for RESP and gRPC, and accepts auth requests from this machine.
    #[must_use]
    pub fn all_front_ends(self) -> Self {
        let listening = self.with("grpc", "127.0.0.1:0").with("resp", "127.0.0.1:0");
        listening.with("trusted-proxies", "127.0.0.1")
    }

    /// Runs within a maximum of memory.
    #[must_use]
    pub fn cap(self, cap: &'a MemoryCap) -> Self {
        Self { cap: Some(cap), ..self }
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Counts in this Redis.
    #[must_use]
    pub fn redis(self, url: &str) -> Self {
        self.stage.witness().expect_secrets();
        self.with("redis", url)
    }

    /// Sets a Redis time-out long enough for a slow machine.
    #[must_use]
    pub fn patient(self) -> Self {
        self.with("redis-timeout-ms", "10000")
    }

    /// Writes a policy to a new file and uses it.
    #[must_use]
    pub fn policy(self, text: &str) -> Self {
        let path = self.stage.write_policy(text);
        self.policy_file(&path)
    }

    /// Uses the policy in this file.
    #[must_use]
    pub fn policy_file(self, path: &Path) -> Self {
        self.with("policy", path)
    }

    /// Uses this clock instead of the machine's.
    #[must_use]
    pub fn clock(mut self, clock: &Clock) -> Self {
        let variables = clock.environment().map(|(name, value)| (name.to_owned(), value));
        self.environment.extend(variables);
        self
    }

    /// Starts a node.
    pub fn start(&self) -> Node {
        Node::start(self.command(), self.stage.witness().clone())
    }

    /// Starts nodes that form one fleet.
    pub fn start_fleet(self, count: usize) -> Fleet {
        let setup = self.with("report-ms", "200").with("node-lifetime-ms", "600000");
        Fleet::new((0..count).map(|_| setup.start()).collect())
    }

    /// Runs a node that must fail to start with exit code 2, and returns its output.
    pub fn fails_to_start(&self) -> String {
        let mut process = self.command().stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut stderr = BufReader::new(process.stderr.take().expect("stderr is piped"));
        let mut output = String::new();
        while stderr.read_line(&mut output).expect("stderr is text") > 0 {
            if output.contains("listening on") {
                // It would run forever.
                let _ = process.kill();
            }
        }
        let status = process.wait().expect("the process was started");
        self.stage.witness().record("a failed start", output.clone());
        assert!(!output.contains("listening on"), "the node started: {output}");
        assert_eq!(status.code(), Some(2), "{output}");
        output
    }

    fn command(&self) -> Command {
        let program = self.stage.tollgate();
        let mut command =
            self.cap.map_or_else(|| Command::new(program), |cap| cap.command(program));
        command.arg("serve").stdin(Stdio::null()).stdout(Stdio::null()).env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}
