//! Examples that print their results and exit.

use crate::examples::process::run;

fn stdout_of(name: &str) -> String {
    let process = run(name, &[]);
    let errors = String::from_utf8_lossy(&process.stderr).into_owned();
    assert!(process.status.success(), "{name}: {errors}");
    String::from_utf8(process.stdout).unwrap()
}

#[test]
fn tiers_and_routes_have_separate_limits() {
    let expected = "\
anonymous /search 200 200 429 429 429 429
anonymous /items  200 200 200 429 429 429
gold      /search 200 200 200 200 200 429
gold      /items  200 200 200 200 200 200
jobs      /search 200 200 200 200 200 200
jobs      /items  200 200 200 200 200 200
";
    assert_eq!(stdout_of("tiers_and_routes"), expected);
}

/// Redis counts before the outage; the admissions during it are debited afterwards.
#[test]
fn admissions_of_an_outage_are_debited_afterwards() {
    let output = stdout_of("degraded");
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[0], "Redis up:     200 (7 left), 200 (6 left), 200 (5 left)");
    assert!(output.contains("\nstore lost: "), "{output}");
    let during = "Redis killed: 200 (7 left), 200 (6 left), 200 (5 left), 200 (4 left), 200 (3 left), 200 (2 left)";
    assert!(output.contains(during), "{output}");
    assert!(output.contains("\nstore restored: "), "{output}");
    let after = "Redis back:   200 (1 left), 200 (0 left), 429 (0 left), 429 (0 left)";
    assert_eq!(lines.last(), Some(&after), "{output}");
}
