//! Runs the `faults` binary, without servers and nodes.

#![expect(clippy::expect_used, reason = "test helpers may panic")]

use std::process::{Command, Output};

fn faults(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_faults");
    Command::new(program).args(arguments).output().expect("the binary starts")
}

#[test]
fn unknown_arguments_print_the_usage() {
    let output = faults(&["tollgate", "--slow"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("usage: faults TOLLGATE"));
}

#[test]
fn rows_at_the_same_time_report_their_failures() {
    let output = faults(&["/nonexistent/tollgate", "--quick", "--jobs", "2", "31", "32"]);
    assert_eq!(output.status.code(), Some(1));
    let table = String::from_utf8_lossy(&output.stdout);
    for row in ["| 31 | huge requests |", "| 32 | long keys |"] {
        let line = table.lines().find(|line| line.starts_with(row)).unwrap_or_default();
        assert!(line.contains("the binary starts") && line.ends_with("| **no** |"), "{table}");
    }
    assert!(table.contains("0 of 2 rows pass"), "{table}");
}
