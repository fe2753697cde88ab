//! `tollgate override` and `tollgate reset`.

use crate::admin_client::{TOKEN, administered, audit};
use crate::service::{Ended, Service, run, tollgate};

fn ask(service: &Service, args: &[&str]) -> Ended {
    ask_with(service, args, &[("TOLLGATE_ADMIN_TOKEN", TOKEN)])
}

fn ask_with(service: &Service, args: &[&str], environment: &[(&str, &str)]) -> Ended {
    let mut command = tollgate(args);
    command.env("TOLLGATE_SERVER", service.url()).env("USER", "kim");
    Ended::from(command.envs(environment.iter().copied()).output().expect("the binary runs"))
}

#[test]
fn a_night_s_work() {
    let service = administered(&[]);
    service.check("c 1");
    let set = ask(
        &service,
        &["override", "set", "c 1", "200/min", "--for", "2h", "--reason", "the sale"],
    );
    assert_eq!(set.code, 0, "{}", set.stderr);
    assert!(
        set.stdout.starts_with("\"c 1\": 200 per 60000 ms; in default; until "),
        "{}",
        set.stdout
    );
    assert!(set.stdout.ends_with("; by \"kim\"; because \"the sale\"\n"), "{}", set.stdout);
    assert_eq!(service.check("c 1")["remaining"], 198);
    let got = ask(&service, &["override", "get", "c 1"]);
    assert_eq!((got.code, got.stdout.as_str()), (0, set.stdout.as_str()));
    let listed = ask(&service, &["override", "list"]);
    assert_eq!((listed.code, listed.stdout.as_str()), (0, set.stdout.as_str()));
    let reset = ask(&service, &["reset", "c 1", "--author", "lee"]);
    assert_eq!((reset.code, reset.stdout.as_str()), (0, "c 1 has used nothing\n"));
    assert_eq!(service.check("c 1")["remaining"], 199);
    let removed = ask(&service, &["override", "rm", "c 1"]);
    assert_eq!(
        (removed.code, removed.stdout.as_str()),
        (0, "c 1 has the limits of everyone again\n")
    );
    assert_eq!(service.check("c 1")["limit"], 100);
    let gone = ask(&service, &["override", "get", "c 1"]);
    assert_eq!((gone.code, gone.stdout.as_str()), (1, ""));
    assert!(gone.stderr.contains("\"c 1\" has no limits of its own"), "{}", gone.stderr);
    assert_eq!(ask(&service, &["override", "rm", "c 1"]).code, 1);
    let authors: Vec<_> = audit(&service).iter().map(|entry| entry["author"].clone()).collect();
    assert_eq!(authors, ["kim", "lee", "kim"]);
}

#[test]
fn clients_of_any_name_and_tenant() {
    let service = administered(&[]);
    for client in ["..", ".", "a/b", "ä?#%", "x&tenant=y"] {
        let set = ask(&service, &["override", "set", client, "5/s", "--tenant", "acme", "--json"]);
        assert_eq!(set.code, 0, "{client}: {}", set.stderr);
        let told: serde_json::Value = serde_json::from_str(&set.stdout).unwrap();
        assert_eq!(
            (told["client"].as_str(), told["tenant"].as_str()),
            (Some(client), Some("acme"))
        );
    }
    let listed = ask(&service, &["override", "list", "--prefix", "a/"]);
    assert_eq!(listed.stdout.lines().count(), 1, "{}", listed.stdout);
}

#[test]
fn what_is_wrong_is_told() {
    let service = administered(&[]);
    let wrong = |args: &[&str], words: &str| {
        let ended = ask(&service, args);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
    };
    wrong(&["override", "set", "c1", "20"], "\"20\": a rate needs a period after the count");
    wrong(&["override", "set", "c1"], "RATE");
    wrong(&["override", "set", "c1", "20/s", "--for", "soon"], "--for: ");
    wrong(&["override", "set", "c1", "20/s", "--for", "2h", "--until", "x"], "cannot be used with");
    wrong(&["override", "set", "c1", "20/s", "--until", "soon"], "expires_at");
    wrong(&["override", "set", "c1", "20/s", "--rule", "x"], "unknown rule \"x\"");
    wrong(&["override", "set", "c1", "20/s", "2/min", "--burst", "3"], "--burst");
    wrong(&["override", "get", ""], "id: is empty");
    let ended = ask_with(&service, &["override", "list"], &[]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("set TOLLGATE_ADMIN_TOKEN"), "{}", ended.stderr);
    let other = [("TOLLGATE_ADMIN_TOKEN", "a-wrong-token-0123456789abcdef")];
    let ended = ask_with(&service, &["override", "list"], &other);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("401: the token is not valid here"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("a-wrong-token"), "{}", ended.stderr);
    let ended = ask(&Service::start(&[]), &["reset", "c1"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("started without TOLLGATE_ADMIN_TOKEN"), "{}", ended.stderr);
    let mut nobody = tollgate(&["reset", "c1", "--server", "http://127.0.0.1:1"]);
    let ended = Ended::from(nobody.env("TOLLGATE_ADMIN_TOKEN", TOKEN).output().unwrap());
    assert_eq!(ended.code, 3, "{}", ended.stderr);
}

#[test]
fn check_brings_its_token() {
    let token = "a-token-for-checks-0123456789abcdef";
    let service = Service::start_with(&[], &[("TOLLGATE_CHECK_TOKEN", token)]);
    let with = ask_with(&service, &["check", "c1"], &[("TOLLGATE_CHECK_TOKEN", token)]);
    assert_eq!(with.code, 0, "{}", with.stderr);
    let without = run(&["check", "c1", "--server", &service.url()]);
    assert_eq!(without.code, 2);
    assert!(without.stderr.contains("401"), "{}", without.stderr);
}
