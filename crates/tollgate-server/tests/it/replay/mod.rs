//! `tollgate replay` and `tollgate policy suggest` through the real binary.

mod input;
mod report;
mod suggest;

use serde_json::Value;

use crate::service::{Ended, Scratch, run};

const START: u64 = 1_791_633_336;

const POLICY: &str = "\
version: 1
rules:
  - { name: login, match: { path: /login }, per: [client], limits: [2/min] }
defaults: { limit: 1000/min }
";

/// Returns a line of the common format at this number of seconds after the start.
fn common(seconds: u64, ip: &str, path: &str) -> String {
    let time = jiff::Timestamp::from_second(i64::try_from(START + seconds).unwrap()).unwrap();
    let months =
        ["", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = time.to_string();
    let (date, clock) = text.trim_end_matches('Z').split_once('T').unwrap();
    let parts: Vec<&str> = date.split('-').collect();
    let month = months[parts[1].parse::<usize>().unwrap()];
    format!(
        "{ip} - - [{}/{month}/{}:{clock} +0000] \"GET {path} HTTP/1.1\" 200 12",
        parts[2], parts[0]
    )
}

fn replay_json(scratch: &Scratch, policy: &str, log: &str, more: &[&str]) -> (Value, Ended) {
    let policy = scratch.write("policy.yaml", policy);
    let log = scratch.write("access.log", log);
    let ended = run(&[&["replay", "--json", "--policy", &policy, &log], more].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.stdout.lines().count(), 1, "{}", ended.stdout);
    (serde_json::from_str(&ended.stdout).unwrap(), ended)
}

/// Three logins of one client within a minute: the third is refused.
fn three_logins(line: impl Fn(u64) -> String) -> String {
    (0..3).map(|second| format!("{}\n", line(second))).collect()
}
