//! `tollgate top` on a real terminal, created by `script` of util-linux.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use crate::fake_live_server::{FakeLiveServer, StreamScript, problem, stream};
use crate::service::{eventually, signal};

const OPENED: &str = "\u{1b}[?1049h";
const CLOSED: &str = "\u{1b}[?1049l";
const CURSOR: &str = "\u{1b}[?25h";

/// `tollgate top` on a terminal of 80 × 24. Afterwards the exit code and the terminal settings are printed.
struct Screen {
    process: Child,
    keys: ChildStdin,
    shown: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Screen {
    fn open(server: &FakeLiveServer, environment: &[(&str, &str)]) -> Self {
        let run = r#"stty rows 24 cols 80; sh -c 'echo "pid=$$."; exec "$TOP" top'; echo "code=$?."; stty -a"#;
        let mut command = Command::new("script");
        command.args(["-qec", run, "/dev/null"]).env("TOP", env!("CARGO_BIN_EXE_tollgate"));
        command
            .env("TOLLGATE_SERVER", &server.url)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR");
        command.env("SHELL", "/bin/sh").envs(environment.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("util-linux is installed");
        let keys = process.stdin.take().expect("stdin is piped");
        let mut stdout = process.stdout.take().expect("stdout is piped");
        let shown = Arc::new(Mutex::new(String::new()));
        let output = Arc::clone(&shown);
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = stdout.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
                output.lock().expect("the lock is not poisoned").push_str(&text);
            }
        });
        Self { process, keys, shown, reader: Some(reader) }
    }

    fn shown(&self) -> String {
        self.shown.lock().expect("the lock is not poisoned").clone()
    }

    fn wait_for(&self, words: &str) {
        eventually(words, || self.shown().contains(words));
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the process reads its input");
        self.keys.flush().expect("the process reads its input");
    }

    fn pid(&self) -> u32 {
        let shown = self.shown();
        let pid = shown.split_once("pid=").and_then(|(_, rest)| rest.split_once('.'));
        pid.expect("the pid was printed").0.parse().expect("a number")
    }

    /// Waits for this exit code, checks that the terminal is restored, and returns all output.
    fn wait(mut self, code: i32) -> String {
        self.process.wait().expect("the process exits");
        let reader = self.reader.take().expect("wait is called once");
        reader.join().expect("the reader stops with the process");
        let shown = self.shown();
        let (screen, after) = shown.rsplit_once(CLOSED).expect("the alternate screen is closed");
        assert!(screen.contains(OPENED), "{screen:?}");
        assert!(shown.rfind(CURSOR) > shown.rfind("\u{1b}[?25l"), "{shown:?}");
        assert!(after.contains(&format!("code={code}.")), "{after}");
        assert!(after.contains(" icanon") && after.contains(" echo "), "{after}");
        shown
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn draws_and_restores_the_terminal() {
    let mut screen =
        Screen::open(&FakeLiveServer::start(&[StreamScript::Hold(stream(&[1000]))]), &[]);
    screen.wait_for("degraded/s");
    // Blanks are not drawn over blanks, so the output contains the key only up to its first blank.
    screen.wait_for(r"\u{1b}[2J\u{9b}31m\u{202e}x");
    screen.press("2");
    screen.wait_for("no nodes");
    screen.press("q");
    let shown = screen.wait(0);
    assert!(shown.contains("\u{1b}[38;5;2"), "{shown:?}");
    assert!(!shown.contains(['\u{202e}', '\u{9b}', '\u{7}']), "{shown:?}");
}

#[test]
fn no_color_disables_colours() {
    let server = FakeLiveServer::start(&[StreamScript::Hold(stream(&[1000]))]);
    let mut screen = Screen::open(&server, &[("NO_COLOR", "1")]);
    screen.wait_for("degraded/s");
    screen.press("\u{3}");
    let shown = screen.wait(0);
    assert!(!shown.contains("\u{1b}[38;5;"), "{shown:?}");
}

#[test]
fn signal_restores_the_terminal() {
    let screen = Screen::open(&FakeLiveServer::start(&[StreamScript::Hold(stream(&[1000]))]), &[]);
    screen.wait_for("degraded/s");
    signal(screen.pid(), "TERM");
    screen.wait(0);
}

#[test]
fn error_restores_the_terminal_and_is_printed() {
    let answers = [
        StreamScript::Close(stream(&[1000])),
        problem(503, "draining"),
        problem(401, "the token is not valid here"),
    ];
    let screen = Screen::open(&FakeLiveServer::start(&answers), &[]);
    let shown = screen.wait(2);
    assert!(shown.contains("reconnecting"), "{shown:?}");
    let (_, after) = shown.rsplit_once(CLOSED).expect("the alternate screen is closed");
    assert!(after.contains("tollgate: 401: the token is not valid here"), "{after:?}");
}
