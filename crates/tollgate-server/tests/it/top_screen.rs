//! `tollgate top` on a terminal: a real one, as `script` of util-linux makes it.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use crate::live_teller::{Answer, Teller, problem, stream};
use crate::service::{eventually, signal};

const OPENED: &str = "\u{1b}[?1049h";
const CLOSED: &str = "\u{1b}[?1049l";
const CURSOR: &str = "\u{1b}[?25h";

/// `tollgate top` on a terminal of 80 × 24, which afterwards tells how it ended and how the terminal is.
struct Screen {
    process: Child,
    keys: ChildStdin,
    shown: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Screen {
    fn open(teller: &Teller, environment: &[(&str, &str)]) -> Self {
        let run = r#"stty rows 24 cols 80; sh -c 'echo "pid=$$."; exec "$TOP" top'; echo "code=$?."; stty -a"#;
        let mut command = Command::new("script");
        command.args(["-qec", run, "/dev/null"]).env("TOP", env!("CARGO_BIN_EXE_tollgate"));
        command
            .env("TOLLGATE_SERVER", &teller.url)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR");
        command.env("SHELL", "/bin/sh").envs(environment.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("util-linux is installed");
        let keys = process.stdin.take().expect("stdin is piped");
        let mut stdout = process.stdout.take().expect("stdout is piped");
        let shown = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&shown);
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = stdout.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
                kept.lock().expect("nobody panics here").push_str(&text);
            }
        });
        Self { process, keys, shown, reader: Some(reader) }
    }

    fn shown(&self) -> String {
        self.shown.lock().expect("nobody panics here").clone()
    }

    fn wait_for(&self, words: &str) {
        eventually(words, || self.shown().contains(words));
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("somebody reads them");
        self.keys.flush().expect("somebody reads them");
    }

    fn pid(&self) -> u32 {
        let shown = self.shown();
        let pid = shown.split_once("pid=").and_then(|(_, rest)| rest.split_once('.'));
        pid.expect("it was told").0.parse().expect("a number")
    }

    /// Everything that was shown, once it has ended with this code and the terminal is as it was.
    fn ended(mut self, code: i32) -> String {
        self.process.wait().expect("it ends");
        let reader = self.reader.take().expect("it ends once");
        reader.join().expect("the reader ends with its process");
        let shown = self.shown();
        let (screen, after) = shown.rsplit_once(CLOSED).expect("the screen is left");
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
fn the_screen_is_drawn_and_given_back() {
    let mut screen = Screen::open(&Teller::start(&[Answer::Holds(stream(&[1000]))]), &[]);
    screen.wait_for("degraded/s");
    // Blanks are not drawn over blanks, so the key is seen up to its own.
    screen.wait_for(r"\u{1b}[2J\u{9b}31m\u{202e}x");
    screen.press("2");
    screen.wait_for("no node is known");
    screen.press("q");
    let shown = screen.ended(0);
    assert!(shown.contains("\u{1b}[38;5;2"), "{shown:?}");
    assert!(!shown.contains(['\u{202e}', '\u{9b}', '\u{7}']), "{shown:?}");
}

#[test]
fn colours_are_left_out_on_request() {
    let teller = Teller::start(&[Answer::Holds(stream(&[1000]))]);
    let mut screen = Screen::open(&teller, &[("NO_COLOR", "1")]);
    screen.wait_for("degraded/s");
    screen.press("\u{3}");
    let shown = screen.ended(0);
    assert!(!shown.contains("\u{1b}[38;5;"), "{shown:?}");
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let screen = Screen::open(&Teller::start(&[Answer::Holds(stream(&[1000]))]), &[]);
    screen.wait_for("degraded/s");
    signal(screen.pid(), "TERM");
    screen.ended(0);
}

#[test]
fn an_error_gives_the_terminal_back_and_is_told() {
    let answers = [
        Answer::Says(stream(&[1000])),
        problem(503, "draining"),
        problem(401, "the token is not valid here"),
    ];
    let screen = Screen::open(&Teller::start(&answers), &[]);
    let shown = screen.ended(2);
    assert!(shown.contains("reconnecting"), "{shown:?}");
    let (_, after) = shown.rsplit_once(CLOSED).expect("the screen is left");
    assert!(after.contains("tollgate: 401: the token is not valid here"), "{after:?}");
}
