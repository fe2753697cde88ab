//! `tollgate top`: output and exit codes.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::fake_live_server::{FakeLiveServer, HEAD, StreamScript, problem, stream};
use crate::service::{Ended, Scratch, Service, eventually, run, signal, tollgate};

const POLICY: &str = "\
version: 1
rules:
  - { name: orders, match: { path: /orders }, per: [client], limits: [1/h], next: { limits: [2/h] } }
";

fn once(answer: StreamScript) -> Ended {
    run(&["top", "--once", "--server", &FakeLiveServer::start(&[answer]).url])
}

/// Returns whether a text has no characters that a terminal interprets.
fn is_safe(text: &str) -> bool {
    !text.contains(|letter: char| (letter.is_control() && letter != '\n') || letter == '\u{202e}')
}

#[test]
fn prints_a_summary_without_a_terminal() {
    let server = FakeLiveServer::start(&[StreamScript::Hold(stream(&[1000]))]);
    // Standard output is not a terminal here, so --once is implied.
    for args in [&["top", "--server", &server.url][..], &["top", "--once", "--server", &server.url]]
    {
        let ended = run(args);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        let lines: Vec<&str> = ended.stdout.lines().collect();
        for line in [
            "scope    node node=web-1",
            "store    memory keys=7 max_keys=1000",
            "policy   v1 rules=1 file=-",
            "health   no problems detected",
            "now      allowed/s=12.0 refused/s=3.0 refused%=20.0 degraded/s=0.0 errors/s=0.0 p50_us=210 p99_us=-",
            "node     (no nodes)",
        ] {
            assert!(lines.contains(&line), "{line}\nis not in\n{}", ended.stdout);
        }
        let key = lines.iter().find(|line| line.contains(" c1 ")).expect("the key");
        let words: Vec<&str> = key.split_whitespace().collect();
        assert_eq!(words, ["refused", "37", "-", "default", "60s", "0s", "-", "c1", "-"]);
        assert!(ended.stdout.contains(r" \u{1b}[2J\u{9b}31m\u{202e}x\u{20}y "), "{}", ended.stdout);
        assert!(is_safe(&ended.stdout), "{:?}", ended.stdout);
    }
}

#[test]
fn sends_read_token_or_admin_token() {
    let server = FakeLiveServer::start(&[StreamScript::Hold(stream(&[1000]))]);
    for (names, expected) in [
        (&["TOLLGATE_ADMIN_TOKEN"][..], "authorization: bearer tollgate_admin_token\r\n"),
        (
            &["TOLLGATE_ADMIN_TOKEN", "TOLLGATE_READ_TOKEN"],
            "authorization: bearer tollgate_read_token\r\n",
        ),
        (&["TOLLGATE_CHECK_TOKEN"], "get /api/live http/1.1\r\n"),
    ] {
        let mut command = tollgate(&["top", "--once", "--server", &server.url]);
        command.envs(names.iter().map(|name| (name, name)));
        assert_eq!(Ended::from(command.output().expect("the binary runs")).code, 0);
        let head = server.requests().last().expect("a request was received").to_lowercase();
        assert!(head.contains(expected), "{head}");
        assert!(head.contains("accept: text/event-stream\r\n"), "{head}");
        assert_eq!(head.contains("bearer"), expected.contains("bearer"), "{head}");
    }
}

#[test]
fn wrong_token_exits_with_two() {
    let server = FakeLiveServer::start(&[problem(401, "the token is not valid\u{1b}[2J here")]);
    let mut command = tollgate(&["top", "--once", "--server", &server.url]);
    let ended = Ended::from(command.env("TOLLGATE_READ_TOKEN", "hunter2").output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert_eq!(ended.stderr, "tollgate: 401: the token is not valid\\u{1b}[2J here\n");
    let mut command = tollgate(&["top", "--server", &server.url]);
    let ended = Ended::from(command.env("TOLLGATE_READ_TOKEN", "a\u{1}b").output().unwrap());
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert_eq!(run(&["top", "--server", "ftp://127.0.0.1:8080"]).code, 2);
    assert_eq!(once(problem(404, "no resource at /api/live")).code, 2);
}

#[test]
fn failed_first_connection_exits_with_three() {
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi";
    for (answer, words) in [
        (problem(503, "not yet"), "503: not yet"),
        (problem(429, "too many"), "429: too many"),
        (StreamScript::Close(page.to_owned()), "not from a Tollgate service"),
        (StreamScript::Close(String::new()), "no response from http://127.0.0.1:"),
        (StreamScript::Close(HEAD.to_owned()), "the service closed the stream"),
        (
            StreamScript::Close(format!("{HEAD}event: frame\ndata: {{}}\n\n")),
            "not from a Tollgate service",
        ),
        (
            StreamScript::Endless(format!("{HEAD}data: ")),
            "the service sent an event of more than 4 MiB",
        ),
    ] {
        let ended = once(answer);
        assert_eq!((ended.code, ended.stdout.as_str()), (3, ""), "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    let ended = run(&["top", "--server", "http://127.0.0.1:1"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (3, ""), "{}", ended.stderr);
}

#[test]
fn idle_stream_exits_with_three() {
    let ended = once(StreamScript::Hold(format!("{HEAD}: hello\n\n")));
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("no data for 10 s"), "{}", ended.stderr);
}

/// A running `tollgate top --json`.
struct Follower(Option<Child>);

impl Follower {
    /// Starts the process; returns it and the frames that it prints.
    fn start(url: &str) -> (Self, impl Iterator<Item = Value> + use<>) {
        let mut command = tollgate(&["top", "--json", "--server", url]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the binary runs");
        let lines = BufReader::new(process.stdout.take().expect("stdout is piped")).lines();
        let frames = lines.map(|line| {
            let line = line.expect("lines are text");
            assert!(is_safe(&line), "{line:?}");
            serde_json::from_str(&line).expect("each line is JSON")
        });
        (Self(Some(process)), frames)
    }

    fn signal(&self, name: &str) {
        signal(self.0.as_ref().expect("the process runs").id(), name);
    }

    /// Waits until the process exits.
    fn wait(mut self) -> Ended {
        let process = self.0.take().expect("wait is called once");
        Ended::from(process.wait_with_output().expect("the process exits"))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if let Some(process) = &mut self.0 {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

#[test]
fn reconnects_after_a_lost_connection() {
    let answers = [
        StreamScript::Close(stream(&[1, 2])),
        problem(503, "draining"),
        StreamScript::Close(stream(&[3])),
        StreamScript::Hold(stream(&[4])),
    ];
    let (follower, frames) = Follower::start(&FakeLiveServer::start(&answers).url);
    let seconds: Vec<i64> =
        frames.take(4).map(|frame| frame["t"].as_i64().expect("a time") / 1000).collect();
    assert_eq!(seconds, [1, 2, 3, 4]);
    follower.signal("TERM");
    let ended = follower.wait();
    assert_eq!(ended.code, 0);
    let expected = "tollgate: reconnecting: the service closed the stream\n\
                    tollgate: reconnecting: 503: draining\n\
                    tollgate: reconnecting: the service closed the stream\n";
    assert_eq!(ended.stderr, expected);
}

#[test]
fn stops_when_the_token_is_refused() {
    let answers = [StreamScript::Close(stream(&[1])), problem(401, "the token is not valid here")];
    let (follower, frames) = Follower::start(&FakeLiveServer::start(&answers).url);
    let lines: Vec<Value> = frames.collect();
    assert_eq!((lines.len(), lines[1]["error"]["kind"].as_str()), (2, Some("usage")), "{lines:?}");
    let ended = follower.wait();
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.ends_with("tollgate: 401: the token is not valid here\n"),
        "{}",
        ended.stderr
    );
}

#[test]
fn stops_when_the_pipe_is_closed() {
    let many: Vec<i64> = (0..500).collect();
    let (follower, mut frames) =
        Follower::start(&FakeLiveServer::start(&[StreamScript::Close(stream(&many))]).url);
    assert!(frames.next().is_some());
    drop(frames);
    let ended = follower.wait();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn prints_one_frame_per_line() {
    let server = FakeLiveServer::start(&[StreamScript::Hold(stream(&[7, 8]))]);
    let ended = run(&["top", "--json", "--once", "--server", &server.url]);
    assert_eq!((ended.code, ended.stdout.lines().count()), (0, 1));
    let frame: Value = serde_json::from_str(&ended.stdout).expect("one JSON value");
    assert_eq!(frame["refused"][1]["key"], "\u{1b}[2J\u{9b}31m\u{202e}x y");
}

#[test]
fn shows_refused_keys_of_a_service() {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", POLICY);
    let service = Service::start(&["--policy", &policy, "--node-id", "web-1"]);
    let facts = r#"{"facts":{"client":"c 1","path":"/orders"}}"#;
    let allowed: Vec<Value> =
        (0..3).map(|_| service.post("/check", facts).json()["allowed"].clone()).collect();
    assert_eq!(allowed, [true, false, false]);
    let top = || run(&["top", "--once", "--server", &service.url()]);
    // A second is reported when it is over.
    let key = || top().stdout.lines().find(|line| line.contains(r"c\u{20}1")).map(str::to_owned);
    eventually("the key is shown", || key().is_some());
    let key = key().expect("the key was shown before");
    let words: Vec<&str> = key.split_whitespace().collect();
    assert_eq!(
        [words[0], words[1], words[3], words[4]],
        ["refused", "2", "orders", "1/h"],
        "{key}"
    );
    assert_eq!(words[6..], ["-", r"c\u{20}1", "client=c", "1", "path=/orders"], "{key}");
    let summary = top().stdout;
    assert!(summary.contains("\nscope    node node=web-1\nstore    memory keys="), "{summary}");
    assert!(summary.contains("\nrule     orders   enforce  on"), "{summary}");
    let trial = |line: &str| line.starts_with("trial    orders") && line.ends_with("next 2/h");
    assert!(summary.lines().any(trial), "{summary}");
    let json = run(&["top", "--once", "--json", "--server", &service.url()]);
    let frame: Value = serde_json::from_str(&json.stdout).expect("one JSON value");
    assert_eq!((json.code, frame["node"].as_str()), (0, Some("web-1")));
}

#[test]
fn service_with_token_refuses_other_tokens() {
    let token = "a-token-for-readers-0123456789abcdef";
    let service = Service::start_with(&[], &[("TOLLGATE_READ_TOKEN", token)]);
    let with = |token: &str| {
        let mut command = tollgate(&["top", "--once", "--server", &service.url()]);
        Ended::from(command.env("TOLLGATE_READ_TOKEN", token).output().expect("the binary runs"))
    };
    assert_eq!(with(token).code, 0);
    let wrong = with("a-wrong-token-0123456789abcdef");
    assert_eq!((wrong.code, wrong.stdout.as_str()), (2, ""));
    assert!(wrong.stderr.starts_with("tollgate: 401: "), "{}", wrong.stderr);
    assert!(!wrong.stderr.contains("a-wrong-token"), "{}", wrong.stderr);
    let none = run(&["top", "--once", "--server", &service.url()]);
    assert_eq!(none.code, 2, "{}", none.stderr);
}

#[test]
fn reconnects_to_a_restarted_service() {
    let service = Service::start(&["--node-id", "first"]);
    let address = service.address().to_string();
    let (follower, mut frames) = Follower::start(&service.url());
    assert_eq!(frames.next().expect("a frame")["node"], "first");
    assert!(service.stop().0.success());
    let mut again = tollgate(&["serve", "--http", &address, "--node-id", "second"]);
    let _service = Service::start_as(&mut again);
    assert!(frames.any(|frame| frame["node"] == "second"));
    follower.signal("INT");
    let ended = follower.wait();
    assert_eq!(ended.code, 0);
    assert!(ended.stderr.contains("tollgate: reconnecting: "), "{}", ended.stderr);
}
