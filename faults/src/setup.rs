//! What a node is started with.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use tollgate_testkit::clock::Clock;

use crate::canary::TOKENS;
use crate::fleet::Fleet;
use crate::node::Node;
use crate::stage::Stage;

/// Settings of a node. They come by its environment: what is typed others can see, and a program that does
/// not know one yet starts all the same.
#[derive(Debug)]
pub struct Setup<'a> {
    stage: &'a Stage,
    environment: Vec<(String, OsString)>,
}

impl<'a> Setup<'a> {
    pub(crate) fn new(stage: &'a Stage) -> Self {
        let tokens = TOKENS.map(|(name, token)| (name.to_owned(), token.into()));
        Self { stage, environment: tokens.into() }.with("http", "127.0.0.1:0")
    }

    /// Without a token for questions: anybody may ask.
    #[must_use]
    pub fn open(mut self) -> Self {
        self.environment.retain(|(name, _)| name != "TOLLGATE_CHECK_TOKEN");
        self
    }

    /// One more setting, by the name of its flag: `"redis-timeout-ms"`.
    #[must_use]
    pub fn with(self, flag: &str, value: impl Into<OsString>) -> Self {
        let name = format!("TOLLGATE_{}", flag.replace('-', "_").to_ascii_uppercase());
        self.variable(&name, value)
    }

    /// One more variable of its environment, by its own name.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Counters in this Redis.
    #[must_use]
    pub fn redis(self, url: &str) -> Self {
        self.stage.witness().entrust();
        self.with("redis", url)
    }

    /// A store that is waited for as long as a slow machine takes: what must succeed does not fail for time.
    #[must_use]
    pub fn patient(self) -> Self {
        self.with("redis-timeout-ms", "10000")
    }

    /// A policy, from a file of its own.
    #[must_use]
    pub fn policy(self, text: &str) -> Self {
        let path = self.stage.write_policy(text);
        self.policy_file(&path)
    }

    /// A policy from this file.
    #[must_use]
    pub fn policy_file(self, path: &Path) -> Self {
        self.with("policy", path)
    }

    /// By this clock instead of the machine's.
    #[must_use]
    pub fn clock(mut self, clock: &Clock) -> Self {
        let set = clock.environment().map(|(name, value)| (name.to_owned(), value));
        self.environment.extend(set);
        self
    }

    /// Starts one.
    pub fn start(&self) -> Node {
        Node::start(self.command(), self.stage.witness().clone())
    }

    /// Starts some that know each other.
    pub fn start_fleet(self, count: usize) -> Fleet {
        let often = self.with("heartbeat-ms", "200").with("node-lifetime-ms", "600000");
        Fleet::new((0..count).map(|_| often.start()).collect())
    }

    /// Runs one that must not start; what it says. What it was given is at fault, and so its exit code is 2.
    pub fn refused(&self) -> String {
        let mut process =
            self.command().stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut stderr = BufReader::new(process.stderr.take().expect("it is piped"));
        let mut told = String::new();
        while stderr.read_line(&mut told).expect("stderr is text") > 0 {
            if told.contains("listening on") {
                // It would go on for good.
                let _ = process.kill();
            }
        }
        let status = process.wait().expect("it was started");
        self.stage.witness().hear("a start that failed", told.clone());
        assert!(!told.contains("listening on"), "it started: {told}");
        assert_eq!(status.code(), Some(2), "{told}");
        told
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.stage.tollgate());
        command.arg("serve").stdin(Stdio::null()).stdout(Stdio::null()).env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}
