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
    let (first, rest) = set.stdout.split_once('\n').expect("two lines");
    assert!(first.starts_with("override set for \"c 1\" in rule default until 2"), "{first}");
    assert_eq!((first.ends_with('Z'), rest), (true, "  60s  100/min → 200/min\n"));
    assert_eq!(service.check("c 1")["remaining"], 198);
    let got = run_as_admin(&service, &["override", "get", "c 1"]);
    assert!(got.stdout.starts_with("\"c 1\": 200/min; rules default; until 2"), "{}", got.stdout);
    assert!(got.stdout.ends_with("; author \"kim\"; reason \"the sale\"\n"), "{}", got.stdout);
    let listed = run_as_admin(&service, &["override", "list"]);
    assert_eq!((listed.code, listed.stdout.as_str()), (0, got.stdout.as_str()));
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
fn override_of_one_rule_shows_what_it_replaces_and_keeps() {
    let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/policy.yaml");
    let service = start_with_admin(&["--policy", policy]);
    let run = |args: &str| {
        run_as_admin(&service, &[&["override"], &args.split(' ').collect::<Vec<_>>()[..]].concat())
    };
    let ambiguous = run("set evil 100/min --for 1h");
    assert_eq!((ambiguous.code, ambiguous.stdout.as_str()), (2, ""));
    let (_, commands) = ambiguous.stderr.split_once("run one of:\n").expect("commands");
    let expected =
        "  tollgate override set evil 100/min --for 1h --rule banned        # replaces a block
  tollgate override set evil 100/min --for 1h --rule external-api  # 10/min, 100/h
";
    assert_eq!(commands, expected);
    let limits = "  60s    10/min → 200/min\n  3600s  100/h (kept)\n";
    let dry = run("set c1 200/min --rule external-api --dry-run");
    let would = "would set override for \"c1\" in rule external-api until removed\n";
    assert_eq!(dry.stdout, format!("{would}{limits}"), "{}", dry.stderr);
    assert_eq!((run("get c1").code, audit(&service).len()), (1, 0), "nothing is set");
    let set = run("set c1 200/min --rule external-api");
    assert_eq!(
        set.stdout,
        format!("{}{limits}", would.replace("would set override", "override set"))
    );
    let only = run("set c1 300/min 9/s --rule external-api --only --fresh");
    let expected = "override set for \"c1\" in rule external-api until removed
  60s    200/min → 300/min
  1s     none → 9/s
  3600s  100/h → removed
  the client's counters of this rule are reset
";
    assert_eq!(only.stdout, expected, "{}", only.stderr);
    assert_eq!(run("set c1 30/min --rule default").code, 0);
    assert_eq!(run("set c1 30/min --all-rules").code, 0);
    assert_eq!(
        run("get c1").stdout,
        "\"c1\": 30/min; rules default; author \"kim\"\n\"c1\": 30/min; rules external-api; author \"kim\"\n"
    );
    assert_eq!(run("rm c1 --rule default").stdout, "override of rule default removed\n");
    let absent = run("rm c1 --rule default");
    assert_eq!(absent.code, 1);
    assert!(absent.stderr.contains("no override for rule \"default\""), "{}", absent.stderr);
    let json = run("set c1 30/min --rule default --json").stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["replaces"][0]["before"], "100/min", "{json}");
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
    fails(&["override", "set", "c1", "20/s", "--for", "0s"], "--for: ");
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
