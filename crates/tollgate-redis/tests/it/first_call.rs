//! The first program of the README runs as printed: over Redis, and in memory while Redis is lost.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use tollgate_testkit::server::{Flavor, Server};

const EXAMPLE: &str = include_str!("../../examples/first_call.rs");
const README: &str = include_str!("../../../../README.md");

/// The program without its doc comment, as the README shows it.
fn program() -> &'static str {
    EXAMPLE.split_once("\n\n").expect("a doc comment, then the program").1
}

fn run(url: &str) -> String {
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples/first_call");
    assert!(path.exists(), "first_call is not built: cargo build -p tollgate-redis --examples");
    let output =
        Command::new(path).env("REDIS_URL", url).stdin(Stdio::null()).output().expect("runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn readme_shows_the_program_in_at_most_12_lines() {
    assert!(program().lines().count() <= 12);
    assert!(README.contains(program()), "README.md does not show examples/first_call.rs");
}

#[test]
fn first_program_counts_in_redis_and_survives_its_loss() {
    let server = Server::start(Flavor::Redis);
    assert_eq!(run(&server.url()), "true Some(9) None\n");
    let keys = server.raw().call(&["KEYS", "rl:*"]).array().len();
    assert_eq!(keys, 1, "Redis holds the counter");
    let url = server.url();
    server.kill();
    assert_eq!(run(&url), "true Some(9) None\n", "the fallback decides");
}
