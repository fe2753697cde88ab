//! A watchdog process: kills a server and deletes its directory when the test exits or is killed.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Starts and kills the command in its arguments on request, until its stdin closes, which also happens when the test
/// is killed. Then it kills the command and deletes the directory. If the command is stopped at that moment, the system
/// sends SIGHUP to both, which the watchdog must ignore.
const SCRIPT: &str = r#"
    trap '' HUP
    dir=$1
    shift
    id=
    stop() {
        [ -z "$id" ] || { kill -9 "$id"; wait "$id"; }
        id=
    }
    while read -r command; do
        stop
        if [ "$command" = run ]; then
            "$@" </dev/null >"$dir/log" 2>&1 &
            id=$!
        fi
        echo "$id"
    done
    stop
    rm -rf "$dir"
"#;

/// A directory and the command that runs in it.
#[derive(Debug)]
pub(crate) struct Watchdog {
    shell: Child,
    replies: BufReader<ChildStdout>,
    dir: PathBuf,
}

impl Watchdog {
    /// Takes ownership of a directory, and prepares a command without starting it.
    pub(crate) fn new(dir: PathBuf, command: &[OsString]) -> Self {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "watchdog"])
            .arg(&dir)
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Ctrl-C must stop the test only: the watchdog cleans up afterwards.
            .process_group(0)
            .spawn()
            .expect("run sh");
        let replies = BufReader::new(shell.stdout.take().expect("stdout is piped"));
        Self { shell, replies, dir }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts the command, after killing the previous run. Returns its process id.
    pub(crate) fn run(&mut self) -> u32 {
        self.request("run").parse().expect("the watchdog replies with the process id")
    }

    /// Kills the command immediately. The directory stays.
    pub(crate) fn kill(&mut self) {
        self.request("kill");
    }

    fn request(&mut self, command: &str) -> String {
        let stdin = self.shell.stdin.as_mut().expect("stdin is open until drop");
        writeln!(stdin, "{command}").expect("the watchdog reads");
        let mut line = String::new();
        self.replies.read_line(&mut line).expect("the watchdog replies");
        line.trim().to_owned()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// Creates a new temporary directory.
pub(crate) fn scratch() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("tollgate-server-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    fs::create_dir_all(&path).expect("create a temporary directory");
    path
}
