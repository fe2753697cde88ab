//! Examples that show something and end.

use crate::process::run;

fn said(name: &str) -> String {
    let ended = run(name, &[]);
    let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{name}: {errors}");
    String::from_utf8(ended.stdout).unwrap()
}

#[test]
fn tiers_and_routes_have_limits_of_their_own() {
    let expected = "\
anonymous /search 200 200 429 429 429 429
anonymous /items  200 200 200 429 429 429
gold      /search 200 200 200 200 200 429
gold      /items  200 200 200 200 200 200
jobs      /search 200 200 200 200 200 200
jobs      /items  200 200 200 200 200 200
";
    assert_eq!(said("tiers_and_routes"), expected);
}

/// The counts before are those of Redis; what was spent alone is known to it afterwards.
#[test]
fn a_killed_redis_is_told_what_passed_without_it() {
    let said = said("degraded");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "Redis serves: 200 (7 left), 200 (6 left), 200 (5 left)");
    assert!(said.contains("\nlost: "), "{said}");
    let alone = "Redis killed: 200 (7 left), 200 (6 left), 200 (5 left), 200 (4 left), 200 (3 left), 200 (2 left)";
    assert!(said.contains(alone), "{said}");
    assert!(said.contains("\nback: "), "{said}");
    let back = "Redis back:   200 (1 left), 200 (0 left), 429 (0 left), 429 (0 left)";
    assert_eq!(lines.last(), Some(&back), "{said}");
}
