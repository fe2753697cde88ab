//! `tollgate override` and `tollgate reset`.

use crate::admin_client::{TOKEN, audit, start_with_admin};
use crate::service::{Ended, Service, run, tollgate};

fn run_as_admin(service: &Service, args: &[&str]) -> Ended {
    run_with(service, args, &[("TOLLGATE_ADMIN_TOKEN", TOKEN)])
}

fn run_with(service: &Service, args: &[&str], environment: &[(&str, &str)]) -> Ended {
    let mut command = tollgate(args);
    command.env("TOLLGATE_SERVER", service.url()).env("USER", "kim");
    Ended::from(command.envs(environment.iter().copied()).output().expect("the binary runs"))
}

#[test]
fn overrides_and_resets_a_client() {
    let service = start_with_admin(&[]);
    service.check("c 1");
    let set = run_as_admin(
        &service,
        &["override", "set", "c 1", "200/min", "--for", "2h", "--reason", "the sale"],
    );
    assert_eq!(set.code, 0, "{}", set.stderr);
    assert!(
        set.stdout.starts_with("\"c 1\": 200 per 60000 ms; rules default; until "),
        "{}",
        set.stdout
    );
    assert!(set.stdout.ends_with("; author \"kim\"; reason \"the sale\"\n"), "{}", set.stdout);
    assert_eq!(service.check("c 1")["remaining"], 198);
    let got = run_as_admin(&service, &["override", "get", "c 1"]);
    assert_eq!((got.code, got.stdout.as_str()), (0, set.stdout.as_str()));
    let listed = run_as_admin(&service, &["override", "list"]);
    assert_eq!((listed.code, listed.stdout.as_str()), (0, set.stdout.as_str()));
    let reset = run_as_admin(&service, &["reset", "c 1", "--author", "lee"]);
    assert_eq!((reset.code, reset.stdout.as_str()), (0, "usage of c 1 reset\n"));
    assert_eq!(service.check("c 1")["remaining"], 199);
    let removed = run_as_admin(&service, &["override", "rm", "c 1"]);
    assert_eq!(
        (removed.code, removed.stdout.as_str()),
        (0, "override removed; policy limits apply\n")
    );
    assert_eq!(service.check("c 1")["limit"], 100);
    let absent = run_as_admin(&service, &["override", "get", "c 1"]);
    assert_eq!((absent.code, absent.stdout.as_str()), (1, ""));
    assert!(absent.stderr.contains("\"c 1\" has no override"), "{}", absent.stderr);
    assert_eq!(run_as_admin(&service, &["override", "rm", "c 1"]).code, 1);
    let authors: Vec<_> = audit(&service).iter().map(|entry| entry["author"].clone()).collect();
    assert_eq!(authors, ["kim", "lee", "kim"]);
}

#[test]
fn accepts_any_client_name_and_tenant() {
    let service = start_with_admin(&[]);
    for client in ["..", ".", "a/b", "ä?#%", "x&tenant=y"] {
        let set = run_as_admin(
            &service,
            &["override", "set", client, "5/s", "--tenant", "acme", "--json"],
        );
        assert_eq!(set.code, 0, "{client}: {}", set.stderr);
        let reply: serde_json::Value = serde_json::from_str(&set.stdout).unwrap();
        assert_eq!(
            (reply["client"].as_str(), reply["tenant"].as_str()),
            (Some(client), Some("acme"))
        );
    }
    let listed = run_as_admin(&service, &["override", "list", "--prefix", "a/"]);
    assert_eq!(listed.stdout.lines().count(), 1, "{}", listed.stdout);
}

#[test]
fn errors_name_the_problem() {
    let service = start_with_admin(&[]);
    let fails = |args: &[&str], words: &str| {
        let ended = run_as_admin(&service, args);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
    };
    fails(&["override", "set", "c1", "20"], "\"20\": a rate needs a period after the count");
    fails(&["override", "set", "c1"], "RATE");
    fails(&["override", "set", "c1", "20/s", "--for", "soon"], "--for: ");
    fails(&["override", "set", "c1", "20/s", "--for", "2h", "--until", "x"], "cannot be used with");
    fails(&["override", "set", "c1", "20/s", "--until", "soon"], "expires_at");
    fails(&["override", "set", "c1", "20/s", "--rule", "x"], "unknown rule \"x\"");
    fails(&["override", "set", "c1", "20/s", "2/min", "--burst", "3"], "--burst");
    fails(&["override", "get", ""], "id: must not be empty");
    let ended = run_with(&service, &["override", "list"], &[]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("set TOLLGATE_ADMIN_TOKEN"), "{}", ended.stderr);
    let wrong_token = [("TOLLGATE_ADMIN_TOKEN", "a-wrong-token-0123456789abcdef")];
    let ended = run_with(&service, &["override", "list"], &wrong_token);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("401: invalid token"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("a-wrong-token"), "{}", ended.stderr);
    let ended = run_as_admin(&Service::start(&[]), &["reset", "c1"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("started without TOLLGATE_ADMIN_TOKEN"), "{}", ended.stderr);
    let mut unreachable = tollgate(&["reset", "c1", "--server", "http://127.0.0.1:1"]);
    let ended = Ended::from(unreachable.env("TOLLGATE_ADMIN_TOKEN", TOKEN).output().unwrap());
    assert_eq!(ended.code, 3, "{}", ended.stderr);
}

#[test]
fn check_sends_its_token() {
    let token = "a-token-for-checks-0123456789abcdef";
    let service = Service::start_with(&[], &[("TOLLGATE_CHECK_TOKEN", token)]);
    let accepted = run_with(&service, &["check", "c1"], &[("TOLLGATE_CHECK_TOKEN", token)]);
    assert_eq!(accepted.code, 0, "{}", accepted.stderr);
    let refused = run(&["check", "c1", "--server", &service.url()]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("401"), "{}", refused.stderr);
}
