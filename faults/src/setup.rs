//! What a node is started with.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use tollgate_testkit::clock::Clock;

use crate::canary::Witness;
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
        Self { stage, environment: Vec::new() }.with("http", "127.0.0.1:0")
    }

    /// One more setting, by the name of its flag: `"redis-timeout-ms"`.
    #[must_use]
    pub fn with(mut self, flag: &str, value: impl Into<OsString>) -> Self {
        let name = format!("TOLLGATE_{}", flag.replace('-', "_").to_ascii_uppercase());
        self.environment.push((name, value.into()));
        self
    }

    /// Counters in this Redis.
    #[must_use]
    pub fn redis(self, url: &str) -> Self {
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

    /// Runs one that must not start; what it says.
    pub fn refused(&self) -> String {
        let output = self.command().output().expect("the program runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        self.hear(self.stage.witness(), &told);
        assert!(!output.status.success(), "it ended well: {told}");
        assert!(!told.contains("listening on"), "it started: {told}");
        told
    }

    fn hear(&self, witness: &Witness, told: &str) {
        witness.hear("a start that failed", told.to_owned());
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.stage.tollgate());
        command.arg("serve").stdin(Stdio::null()).stdout(Stdio::null()).env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}
