//! RESP with client libraries, unmodified: redis-py, ioredis and redis-rs, in both versions, with and without a token.
//! Every client sends the same commands and prints the replies, a line each.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use redis::{Client, Connection, RedisResult};

use crate::resp_client::start_with;
use crate::service::{Scratch, Service};

const TOKEN: &str = "a-token-for-checks-0123456789abcdef";

/// The window outlasts any test.
const POLICY: &str = "
version: 1
rules: [{ name: search, match: { path: /search }, limits: [{ rate: 3/d, name: daily }] }]
";

/// How a client connects.
#[derive(Debug, Clone, Copy)]
struct Case {
    version: u8,
    token: Option<&'static str>,
}

const CASES: [Case; 4] = [
    Case { version: 2, token: None },
    Case { version: 3, token: None },
    Case { version: 2, token: Some(TOKEN) },
    Case { version: 3, token: Some(TOKEN) },
];

impl Case {
    /// Starts a server for one client.
    fn start(self) -> (Scratch, Service, SocketAddr) {
        let scratch = Scratch::new();
        let policy = scratch.write("policy.yaml", POLICY);
        let token = self.token.map(|token| ("TOLLGATE_CHECK_TOKEN", token));
        let (service, address) = start_with(&["--policy", &policy], token.as_slice());
        (scratch, service, address)
    }

    /// Returns what every client prints before errors.
    fn expected(self) -> Vec<String> {
        let pairs = (0..50).map(|number| format!(" {number} {}", 49 - number));
        vec![
            format!("version {}", self.version),
            "throttle 0 16 15 -1 2".to_owned(),
            "check 1 3 2 0 1 search daily".to_owned(),
            "check 1 3 1 0 1 search daily".to_owned(),
            "check 1 3 0 0 1 search daily".to_owned(),
            "check 0 3 0 1 1 search daily".to_owned(),
            format!("pipeline{}", pairs.collect::<String>()),
            "binary 15 14 15".to_owned(),
        ]
    }

    /// Returns the beginnings of the lines with errors, and a part of each in lower case. Clients add words of their own.
    fn errors(self) -> Vec<(&'static str, &'static str)> {
        let unknown = ("unknown ", "unknown command 'get'");
        match self.token {
            Some(_) => vec![("no token ", "authent"), ("wrong token ", "password"), unknown],
            None => vec![unknown],
        }
    }

    fn assert_printed(self, output: &str) {
        let (lines, expected) = (output.lines().collect::<Vec<_>>(), self.expected());
        let (replies, errors) = lines.split_at(expected.len().min(lines.len()));
        assert_eq!(replies, expected, "{self:?}: {output}");
        assert_eq!(errors.len(), self.errors().len(), "{self:?}: {output}");
        for (line, (start, part)) in errors.iter().zip(self.errors()) {
            let is_error = line.starts_with(start) && line.to_lowercase().contains(part);
            assert!(is_error, "{self:?}: {line}");
        }
    }
}

/// Returns the path of a file that `scripts/clients` installs.
fn installed(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients").join(path);
    assert!(path.exists(), "{} not found: run scripts/clients", path.display());
    path
}

/// Returns the path of a program in another language, next to the packages of Node.
fn program(scratch: &Scratch, path: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let copy = scratch.path().join(source.file_name().expect("a file"));
    fs::copy(&source, &copy).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    let packages = scratch.path().join("node_modules");
    if !packages.exists() {
        symlink(installed("node_modules"), packages).expect("the directory can be written to");
    }
    copy
}

/// Runs a program with the address, these arguments and the token. It must print no warnings.
fn run(command: &mut Command, address: SocketAddr, args: &[&str], token: Option<&str>) -> String {
    command.arg(address.ip().to_string()).arg(address.port().to_string()).args(args).args(token);
    let output = command.stdin(Stdio::null()).output();
    let Output { status, stdout, stderr } =
        output.unwrap_or_else(|error| panic!("{command:?}: {error}; run scripts/clients"));
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && stderr.is_empty(), "{command:?}: {stdout}{stderr}");
    stdout.into_owned()
}

fn python(scratch: &Scratch, path: &str) -> Command {
    let mut command = Command::new(installed("bin/python3"));
    command.args(["-W", "error"]).arg(program(scratch, path));
    command
}

fn node(scratch: &Scratch, path: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(program(scratch, path));
    command
}

#[test]
fn redis_py_works_unmodified() {
    for case in CASES {
        let (scratch, _service, address) = case.start();
        let mut command = python(&scratch, "crates/tollgate-server/tests/it/clients/redis_py.py");
        let version = case.version.to_string();
        case.assert_printed(&run(&mut command, address, &[&version], case.token));
    }
}

#[test]
fn ioredis_works_unmodified() {
    for case in CASES {
        let (scratch, _service, address) = case.start();
        let mut command = node(&scratch, "crates/tollgate-server/tests/it/clients/ioredis.mjs");
        let version = case.version.to_string();
        case.assert_printed(&run(&mut command, address, &[&version], case.token));
    }
}

#[test]
fn redis_rs_works_unmodified() {
    for case in CASES {
        let (_scratch, _service, address) = case.start();
        case.assert_printed(&redis_rs(address, case).expect("replies"));
    }
}

/// Connects redis-rs in the version of the case.
fn connect(address: SocketAddr, case: Case, token: Option<&str>) -> RedisResult<Connection> {
    let password = token.map(|token| format!(":{token}@")).unwrap_or_default();
    let url = format!("redis://{password}{address}/?protocol=resp{}", case.version);
    Client::open(url)?.get_connection()
}

/// Sends the commands with redis-rs, and returns the lines that the other clients print.
fn redis_rs(address: SocketAddr, case: Case) -> RedisResult<String> {
    let mut client = connect(address, case, case.token)?;
    let mut lines = Vec::new();
    let info: String = redis::cmd("CLIENT").arg("INFO").query(&mut client)?;
    let version = info.split_once("resp=").map_or("", |(_, rest)| &rest[..1]);
    lines.push(format!("version {version}"));
    let throttle = |key: &[u8], arguments: [u32; 3]| {
        let mut command = redis::cmd("CL.THROTTLE");
        command.arg(key).arg(&arguments[..]);
        command
    };
    let numbers: [i64; 5] = throttle(b"user123", [15, 30, 60]).query(&mut client)?;
    lines.push(format!("throttle {}", numbers.map(|number| number.to_string()).join(" ")));
    for _ in 0..4 {
        type Reply = (i64, i64, i64, i64, i64, String, String);
        let mut command = redis::cmd("TOLLGATE.CHECK");
        let command = command.arg("client=user123").arg("path=/search");
        let (allowed, limit, remaining, retry_after, reset_after, rule, name): Reply =
            command.query(&mut client)?;
        let waits = [retry_after, reset_after].map(|wait| u8::from(wait > 0));
        let [waits, resets] = waits;
        lines.push(format!("check {allowed} {limit} {remaining} {waits} {resets} {rule} {name}"));
    }
    let mut pipeline = redis::pipe();
    for number in 0..50 {
        pipeline.cmd("ECHO").arg(number);
        pipeline.add_command(throttle(b"pipeline", [49, 1, 86400]));
    }
    let replies: Vec<(i64, [i64; 5])> = pipeline.query(&mut client)?;
    let pairs = replies.iter().map(|(echo, figures)| format!(" {echo} {}", figures[2]));
    lines.push(format!("pipeline{}", pairs.collect::<String>()));
    let keys: [&[u8]; 3] = [b"\xff\0\r\n", b"\xff\0\r\n", b"\xfe\0\r\n"];
    let mut binary = "binary".to_owned();
    for key in keys {
        let figures: [i64; 5] = throttle(key, [15, 1, 86400]).query(&mut client)?;
        binary.push_str(&format!(" {}", figures[2]));
    }
    lines.push(binary);
    let tokens = [("no token", None), ("wrong token", Some("wrong"))];
    for (name, token) in tokens.into_iter().filter(|_| case.token.is_some()) {
        let call = |mut client| throttle(b"user123", [15, 30, 60]).query::<()>(&mut client);
        let error = connect(address, case, token).and_then(call).expect_err("an error");
        lines.push(format!("{name} {error}"));
    }
    let error = redis::cmd("GET").arg("user123").query::<()>(&mut client).expect_err("an error");
    lines.push(format!("unknown {error}"));
    Ok(lines.join("\n"))
}

#[test]
fn examples_work_as_they_are() {
    let expected =
        "limited=0 limit=16 remaining=15 retry_after=-1 reset_after=2\nallowed=1 remaining=99\n";
    for token in [None, Some(TOKEN)] {
        let environment = token.map(|token| ("TOLLGATE_CHECK_TOKEN", token));
        for example in ["python.py", "node.mjs"] {
            let (_service, address) = start_with(&[], environment.as_slice());
            let (scratch, path) = (Scratch::new(), format!("examples/resp/{example}"));
            let mut command = match example {
                "python.py" => python(&scratch, &path),
                _ => node(&scratch, &path),
            };
            assert_eq!(run(&mut command, address, &[], token), expected, "{example} {token:?}");
        }
    }
}

#[test]
fn other_examples_are_marked_as_not_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/resp");
    let files =
        fs::read_dir(folder).expect("the examples").map(|file| file.expect("a file").path());
    let mut marked: Vec<String> = files
        .filter(|path| fs::read_to_string(path).expect("text").contains("Not run by our tests."))
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    marked.sort_unstable();
    assert_eq!(marked, ["Client.java", "client.php", "client.rb", "main.go"]);
}
