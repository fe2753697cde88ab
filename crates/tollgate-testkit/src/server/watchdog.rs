//! A directory and what runs in it, neither of which outlives who made it.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Ends and runs the rest of its arguments as it is told, until its input ends, which happens also when
/// the process at the other end of it is killed. Then nothing is left. If the program hangs at that
/// moment the system hangs up on both, which the watcher must survive.
const WATCH: &str = r#"
    trap '' HUP
    dir=$1
    shift
    id=
    end() {
        [ -z "$id" ] || { kill -9 "$id"; wait "$id"; }
        id=
    }
    while read -r command; do
        end
        if [ "$command" = run ]; then
            "$@" </dev/null >"$dir/log" 2>&1 &
            id=$!
        fi
        echo "$id"
    done
    end
    rm -rf "$dir"
"#;

#[derive(Debug)]
pub(crate) struct Keeper {
    watcher: Child,
    told: BufReader<ChildStdout>,
    dir: PathBuf,
}

impl Keeper {
    /// Takes over a directory and keeps a command for it, which does not run yet.
    pub(crate) fn new(dir: PathBuf, command: &[OsString]) -> Self {
        let mut watcher = Command::new("sh")
            .args(["-c", WATCH, "watch"])
            .arg(&dir)
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // An interrupt from the keyboard is for the test; the watcher must live to see it end.
            .process_group(0)
            .spawn()
            .expect("there is a shell");
        let told = BufReader::new(watcher.stdout.take().expect("it is piped"));
        Self { watcher, told, dir }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Runs the command, after the end of the run before, and tells its process.
    pub(super) fn run(&mut self) -> u32 {
        self.tell("run").parse().expect("the watcher tells the process")
    }

    /// Ends the run at once. The directory stays.
    pub(super) fn end(&mut self) {
        self.tell("end");
    }

    fn tell(&mut self, command: &str) -> String {
        let stdin = self.watcher.stdin.as_mut().expect("it is open until this is dropped");
        writeln!(stdin, "{command}").expect("the watcher listens");
        let mut line = String::new();
        self.told.read_line(&mut line).expect("the watcher answers");
        line.trim().to_owned()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

/// A directory that nobody else has.
pub(crate) fn scratch() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("tollgate-server-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    fs::create_dir_all(&path).expect("temporary directories can be made");
    path
}
