//! One run of a server program, which does not outlive who started it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::wait::eventually;

/// Runs the rest of its arguments until its input ends, which happens also when the process at the other
/// end of it is killed. Then nothing is left. If the program hangs at that moment the system hangs up on
/// both, which the watcher must survive.
const WATCH: &str = r#"
    trap '' HUP
    dir=$1
    shift
    "$@" </dev/null >"$dir/log" 2>&1 &
    echo "$!"
    read -r _
    kill -9 "$!"
    wait "$!"
    rm -rf "$dir"
"#;

#[derive(Debug)]
pub(super) struct Process {
    watcher: Child,
    id: u32,
    dir: PathBuf,
}

impl Process {
    /// Runs a program in a directory of its own.
    pub(super) fn start(program: &Path, args: &[String]) -> Self {
        let dir = scratch();
        let mut watcher = Command::new("sh")
            .args(["-c", WATCH, "watch"])
            .arg(&dir)
            .arg(program)
            .args(args)
            .args(["--dir".as_ref(), dir.as_os_str()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // An interrupt from the keyboard is for the test; the watcher must live to see it end.
            .process_group(0)
            .spawn()
            .expect("there is a shell");
        let mut line = String::new();
        let stdout = watcher.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the watcher tells a number");
        let id = line.trim().parse().expect("the watcher tells the process");
        Self { watcher, id, dir }
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// What it has said so far.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    pub(super) fn is_running(&self) -> bool {
        self.state().is_some_and(|state| state != 'Z' && state != 'X')
    }

    /// Stops it where it is, without its knowing.
    pub(super) fn hang(&self) {
        self.signal("STOP");
        eventually("a stopped process", || self.state() == Some('T'));
    }

    pub(super) fn resume(&self) {
        self.signal("CONT");
        eventually("a running process", || self.state() != Some('T'));
    }

    /// The processor time it took, all threads together.
    pub(super) fn cpu(&self) -> Duration {
        let stat = self.stat().expect("it runs");
        // Fields 14 and 15 of proc(5); the state, which is the third, comes first here.
        let ticks = stat.iter().skip(11).take(2);
        let ticks: u64 = ticks.map(|field| field.parse::<u64>().expect("a number")).sum();
        Duration::from_millis(ticks * 1000 / ticks_per_second())
    }

    /// The bytes of memory it holds.
    pub(super) fn rss(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id)).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it runs");
        let kibibytes = line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
        kibibytes * 1024
    }

    fn signal(&self, name: &str) {
        let script = format!("kill -{name} {}", self.id);
        let sent = Command::new("sh").args(["-c", &script]).status().expect("there is a shell");
        assert!(sent.success(), "{script}");
    }

    fn state(&self) -> Option<char> {
        self.stat()?.first()?.chars().next()
    }

    /// What the system tells of it, from its state on.
    fn stat(&self) -> Option<Vec<String>> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id)).ok()?;
        // The name before may hold anything, but nothing after it holds a parenthesis.
        let (_, fields) = stat.rsplit_once(')')?;
        Some(fields.split_whitespace().map(str::to_owned).collect())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

/// A directory that nobody else has.
fn scratch() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("tollgate-server-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    fs::create_dir_all(&path).expect("temporary directories can be made");
    path
}

fn ticks_per_second() -> u64 {
    static TICKS: OnceLock<u64> = OnceLock::new();
    *TICKS.get_or_init(|| {
        let output = Command::new("getconf").arg("CLK_TCK").output().expect("there is getconf");
        let text = String::from_utf8(output.stdout).expect("getconf tells text");
        text.trim().parse().expect("getconf tells a number")
    })
}
