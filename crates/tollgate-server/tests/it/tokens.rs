//! Who may come in where.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::json;

use crate::admin_client::{TOKEN, a_day, admin, administered, limits_of, put};
use crate::client::{Client, Reply};
use crate::service::{Scratch, Service, run, tollgate};

const CHECK: &str = "a-token-for-checks-0123456789abcdef";
const READ: &str = "a-token-for-reading-0123456789abcd";
const OTHER: &str = "another-token-of-the-same-kind-0123";

const ADMIN_PATHS: [(&str, &str); 9] = [
    ("PUT", "/admin/external/clients/c1/limits"),
    ("GET", "/admin/external/clients/c1/limits"),
    ("DELETE", "/admin/external/clients/c1/limits"),
    ("GET", "/admin/external/clients/c1/stats"),
    ("POST", "/admin/external/clients/c1/reset"),
    ("GET", "/admin/overrides"),
    ("GET", "/admin/audit"),
    ("POST", "/admin/policy/reload"),
    ("GET", "/admin"),
];

fn with_token(service: &Service, method: &str, path: &str, token: &str) -> Reply {
    let authorization = format!("Bearer {token}");
    service.client().request(method, path, &[("authorization", &authorization)], "")
}

#[test]
fn without_a_token_configured_there_is_nothing_for_administrators() {
    let service = Service::start(&[]);
    for (method, path) in ADMIN_PATHS {
        let reply = with_token(&service, method, path, TOKEN);
        assert_eq!(reply.status, 404, "{method} {path}: {}", reply.body);
    }
}

#[test]
fn a_missing_or_wrong_token_is_401_and_changes_nothing() {
    for (method, path) in ADMIN_PATHS.into_iter().take(8) {
        let service = administered(&[]);
        let mut client = service.client();
        let right = format!("Bearer {TOKEN}");
        let wrong = [
            vec![],
            vec![("authorization", "Bearer wrong")],
            vec![("authorization", "Basic YTpi")],
            vec![("authorization", TOKEN)],
            vec![("authorization", right.as_str()), ("authorization", right.as_str())],
        ];
        for headers in wrong {
            let reply = client.request(method, path, &headers, &a_day(1));
            assert_eq!(reply.status, 401, "{method} {path} {headers:?}: {}", reply.body);
            assert_eq!(reply.header("www-authenticate"), Some("Bearer realm=\"tollgate\""));
        }
        assert_eq!(admin(&service, "GET", &limits_of("c1"), "").status, 404);
    }
}

#[test]
fn after_ten_failures_the_eleventh_is_429_and_so_is_the_right_one() {
    let service = administered(&[]);
    for nth in 0..10 {
        let reply = with_token(&service, "GET", "/admin/overrides", OTHER);
        assert_eq!(reply.status, 401, "{nth}");
    }
    for token in [OTHER, TOKEN] {
        let reply = with_token(&service, "GET", "/admin/overrides", token);
        assert_eq!(reply.status, 429);
        let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
    }
    assert_eq!(service.get("/api/status").status, 200, "others are not concerned");
    assert!(service.check("c1")["allowed"] == true);
    let metrics = service.get("/metrics").body;
    assert!(metrics.contains("tollgate_auth_failures_total{token=\"admin\"} 10\n"), "{metrics}");
}

#[test]
fn nobody_goes_on_guessing_at_the_admin_token_where_it_only_reads() {
    let tokens = [("TOLLGATE_READ_TOKEN", READ), ("TOLLGATE_ADMIN_TOKEN", TOKEN)];
    let service = Service::start_with(&[], &tokens);
    let read = |token: &str| with_token(&service, "GET", "/api/limits", token).status;
    assert_eq!(read(TOKEN), 200);
    let told: Vec<u16> = (0..12).map(|_| read(OTHER)).collect();
    assert_eq!(told, [[401; 10].as_slice(), &[429; 2]].concat());
    assert_eq!(read(TOKEN), 429, "not even if it is right");
    assert_eq!(read(READ), 200, "programs are not locked out");
    assert_eq!(with_token(&service, "GET", "/admin/overrides", TOKEN).status, 200);
}

#[test]
fn two_tokens_are_valid_at_once() {
    let both = format!("{TOKEN},{OTHER}");
    let service = Service::start_with(&[], &[("TOLLGATE_ADMIN_TOKEN", &both)]);
    for token in [TOKEN, OTHER] {
        assert_eq!(with_token(&service, "GET", "/admin/overrides", token).status, 200);
    }
    let scratch = Scratch::new();
    let file = scratch.write("tokens", &format!("{TOKEN}\n{OTHER}\n"));
    let service = Service::start_with(&[], &[("TOLLGATE_ADMIN_TOKEN_FILE", &file)]);
    for token in [TOKEN, OTHER] {
        assert_eq!(with_token(&service, "GET", "/admin/overrides", token).status, 200);
    }
}

#[test]
fn pages_of_other_sites_are_refused() {
    let service = administered(&[]);
    let right = format!("Bearer {TOKEN}");
    for (name, value) in
        [("origin", "http://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")]
    {
        let headers = [("authorization", right.as_str()), (name, value)];
        let reply = service.client().request("PUT", &limits_of("c1"), &headers, &a_day(1));
        assert_eq!(reply.status, 403, "{name}: {value}: {}", reply.body);
    }
    assert_eq!(admin(&service, "GET", &limits_of("c1"), "").status, 404);
    let ours = [("authorization", right.as_str()), ("origin", "http://tollgate")];
    let reply = service.client().request("PUT", &limits_of("c1"), &ours, &a_day(1));
    assert_eq!(reply.status, 200);
    let preflight = [("origin", "http://evil.example"), ("access-control-request-method", "PUT")];
    let reply = service.client().request("OPTIONS", &limits_of("c1"), &preflight, "");
    assert_eq!(reply.status, 405);
    let allowed = |(name, _): &(String, String)| name.starts_with("access-control");
    assert!(!reply.headers.iter().any(allowed), "{:?}", reply.headers);
}

#[test]
fn checks_and_reading_want_their_tokens_where_they_are_set() {
    let tokens = [
        ("TOLLGATE_CHECK_TOKEN", CHECK),
        ("TOLLGATE_READ_TOKEN", READ),
        ("TOLLGATE_ADMIN_TOKEN", TOKEN),
    ];
    let service = Service::start_with(&[], &tokens);
    let ask = |token: Option<&str>, path: &str, body: &str| {
        let authorization = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> =
            authorization.iter().map(|value| ("authorization", value.as_str())).collect();
        let method = if body.is_empty() { "GET" } else { "POST" };
        service.client().request(method, path, &headers, body).status
    };
    let key = r#"{"key":"c1"}"#;
    for path in ["/check", "/peek", "/refund", "/explain"] {
        assert_eq!(ask(None, path, key), 401, "{path}");
        assert_eq!(ask(Some(CHECK), path, key), 200, "{path}");
    }
    for (path, body) in
        [("/check/batch", r#"{"requests":[]}"#), ("/release", "{}"), ("/renew", "{}")]
    {
        assert_eq!(ask(None, path, body), 401, "{path}");
        assert_ne!(ask(Some(CHECK), path, body), 401, "{path}");
    }
    for path in ["/api/nodes", "/api/counters", "/api/limits", "/api/blocks", "/api/status"] {
        assert_eq!(ask(None, path, ""), 401, "{path}");
        assert_eq!(ask(Some(READ), path, ""), 200, "{path}");
        assert_eq!(ask(Some(TOKEN), path, ""), 200, "{path}: an administrator may look");
    }
    assert_eq!(ask(Some(READ), "/check", key), 401);
    assert_eq!(ask(Some(CHECK), "/api/status", ""), 401);
    assert_eq!(ask(Some(READ), "/admin/overrides", ""), 401);
    for path in ["/metrics", "/healthz", "/readyz", "/openapi.json", "/docs"] {
        assert_eq!(ask(None, path, ""), 200, "{path}");
    }
}

#[test]
fn a_program_with_the_right_token_is_never_locked_out_by_its_neighbours() {
    let service = Service::start_with(&[], &[("TOLLGATE_CHECK_TOKEN", CHECK)]);
    let check = |token: &str| {
        let authorization = format!("Bearer {token}");
        let headers = [("authorization", authorization.as_str())];
        service.client().request("POST", "/check", &headers, r#"{"key":"c1"}"#).status
    };
    let told: Vec<u16> = (0..12).map(|_| check(OTHER)).collect();
    assert_eq!(told, [[401; 10].as_slice(), &[429; 2]].concat());
    assert_eq!(check(CHECK), 200);
}

#[test]
fn bad_tokens_end_the_start_without_being_shown() {
    let scratch = Scratch::new();
    let empty = scratch.write("empty", "\n");
    for (name, value) in [
        ("TOLLGATE_ADMIN_TOKEN", "hunter2"),
        ("TOLLGATE_CHECK_TOKEN", ""),
        ("TOLLGATE_READ_TOKEN_FILE", ""),
        ("TOLLGATE_READ_TOKEN", "short-canary-token"),
        ("TOLLGATE_CHECK_TOKEN", "ä-canary-ä-canary-ä-canary-ä"),
        (
            "TOLLGATE_ADMIN_TOKEN",
            "one-canary-0123456789ab two-canary-0123456789ab three-0123456789abcdef",
        ),
        ("TOLLGATE_ADMIN_TOKEN_FILE", &empty),
        ("TOLLGATE_ADMIN_TOKEN_FILE", "/nowhere/at/all"),
    ] {
        let mut command = tollgate(&["serve", "--http", "127.0.0.1:0"]);
        let ended = command.env(name, value).output().unwrap();
        let stderr = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{name}: {stderr}");
        assert!(stderr.starts_with(&format!("tollgate: {name}: ")), "{stderr}");
        assert!(!stderr.contains("canary") && !stderr.contains("hunter2"), "{stderr}");
    }
    let told = run(&["serve", "--help"]).stdout;
    assert!(!told.contains("-token"), "a token is never an argument");
}

#[test]
fn beyond_loopback_each_kind_of_path_wants_its_token_or_the_flag() {
    let refused = |args: &[&str], tokens: &[(&str, &str)]| {
        let mut command = tollgate(&[&["serve"], args].concat());
        let ended = command.envs(tokens.iter().copied()).output().unwrap();
        assert_eq!(ended.status.code(), Some(2));
        String::from_utf8(ended.stderr).unwrap()
    };
    let (check, read) = (("TOLLGATE_CHECK_TOKEN", CHECK), ("TOLLGATE_READ_TOKEN", READ));
    let wide = ["--http", "0.0.0.0:0"];
    assert!(refused(&wide, &[]).contains("set TOLLGATE_CHECK_TOKEN"));
    assert!(refused(&wide, &[check]).contains("set TOLLGATE_READ_TOKEN"));
    let apart = ["--http", "127.0.0.1:0", "--admin", "0.0.0.0:0"];
    let told = refused(&apart, &[]);
    assert!(told.contains("--admin: ") && told.contains("set TOLLGATE_READ_TOKEN"), "{told}");

    let start = |args: &[&str], tokens: &[(&str, &str)]| {
        let mut command = tollgate(&[&["serve"], args].concat());
        Service::start_as(command.envs(tokens.iter().copied()))
    };
    let protected = start(&wide, &[check, read]);
    assert!(!protected.log().contains("unprotected"), "{}", protected.log());
    let reach = SocketAddr::from((Ipv4Addr::LOCALHOST, protected.address().port()));
    assert_eq!(Client::connect(reach).post("/check", r#"{"key":"c1"}"#).status, 401);
    drop(start(&["--http", "0.0.0.0:0", "--admin", "127.0.0.1:0"], &[check]));
    let open = start(&["--http", "0.0.0.0:0", "--allow-unprotected"], &[read]);
    let log = open.log();
    let warned = log.lines().filter(|line| line.contains("unprotected")).collect::<Vec<_>>();
    assert!(matches!(warned.as_slice(), [one] if one.contains("/check")), "{log}");
}

#[test]
fn what_is_for_administrators_moves_with_their_address() {
    let service = administered(&["--admin", "127.0.0.1:0"]);
    assert_eq!(admin(&service, "GET", "/admin/overrides", "").status, 404);
    let right = format!("Bearer {TOKEN}");
    let mut there = Client::connect(service.admin_address());
    let headers = [("authorization", right.as_str())];
    assert_eq!(there.request("GET", "/admin/overrides", &headers, "").status, 200);
}

#[test]
fn tokens_are_in_nothing_that_is_told() {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", "version: 1\n");
    let args = ["--policy", &policy, "--data-dir", scratch.path().to_str().unwrap()];
    let tokens = [
        ("TOLLGATE_CHECK_TOKEN", CHECK),
        ("TOLLGATE_READ_TOKEN", READ),
        ("TOLLGATE_ADMIN_TOKEN", TOKEN),
        ("TOLLGATE_LOG", "trace"),
    ];
    let service = Service::start_with(&args, &tokens);
    put(&service, "c1", 20);
    let mut told = String::new();
    for (method, path) in ADMIN_PATHS.into_iter().filter(|(method, _)| *method == "GET") {
        let reply = with_token(&service, method, path, TOKEN);
        told += &format!("{:?}{}", reply.headers, reply.body);
    }
    for path in
        ["/api/status", "/api/limits", "/api/nodes", "/metrics", "/openapi.json", "/nowhere"]
    {
        for token in [READ, OTHER] {
            let reply = with_token(&service, "GET", path, token);
            told += &format!("{:?}{}", reply.headers, reply.body);
        }
    }
    let wrong = service.client().request(
        "POST",
        "/check",
        &[("authorization", &format!("Bearer {OTHER}"))],
        r#"{"key":"c1"}"#,
    );
    told += &format!("{:?}{}", wrong.headers, wrong.body);
    told += &std::fs::read_to_string(scratch.path().join("administration.json")).unwrap();
    let (status, log) = service.stop();
    assert!(status.success());
    assert!(log.contains("override.set"), "{log}");
    told += &log;
    assert_eq!(json!(told.contains("kim")), json!(true), "something was told");
    for secret in [CHECK, READ, TOKEN, OTHER] {
        assert!(!told.contains(secret), "{secret} was told");
    }
}
