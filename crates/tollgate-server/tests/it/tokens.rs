//! Access control by tokens.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::json;

use crate::admin_client::{TOKEN, admin, daily_limit, limits_of, put, start_with_admin};
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
fn admin_paths_are_404_without_an_admin_token() {
    let service = Service::start(&[]);
    for (method, path) in ADMIN_PATHS {
        let reply = with_token(&service, method, path, TOKEN);
        assert_eq!(reply.status, 404, "{method} {path}: {}", reply.body);
    }
}

#[test]
fn missing_or_invalid_token_is_401_and_changes_nothing() {
    for (method, path) in ADMIN_PATHS.into_iter().take(8) {
        let service = start_with_admin(&[]);
        let mut client = service.client();
        let valid = format!("Bearer {TOKEN}");
        let invalid = [
            vec![],
            vec![("authorization", "Bearer wrong")],
            vec![("authorization", "Basic YTpi")],
            vec![("authorization", TOKEN)],
            vec![("authorization", valid.as_str()), ("authorization", valid.as_str())],
        ];
        for headers in invalid {
            let reply = client.request(method, path, &headers, &daily_limit(1));
            assert_eq!(reply.status, 401, "{method} {path} {headers:?}: {}", reply.body);
            assert_eq!(reply.header("www-authenticate"), Some("Bearer realm=\"tollgate\""));
        }
        assert_eq!(admin(&service, "GET", &limits_of("c1"), "").status, 404);
    }
}

#[test]
fn failures_are_logged_with_their_address_and_without_their_token() {
    let service = start_with_admin(&[]);
    for _ in 0..30 {
        with_token(&service, "GET", "/admin/overrides", OTHER);
    }
    service
        .wait_for_log("missing or invalid token peer=127.0.0.1 token=\"admin\" reason=\"wrong\"");
    let log = service.log();
    assert_eq!(log.matches("missing or invalid token").count(), 10, "{log}");
    assert!(!log.contains(OTHER), "{log}");
}

#[test]
fn after_ten_failures_even_the_valid_token_is_429() {
    let service = start_with_admin(&[]);
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
    assert_eq!(service.get("/api/status").status, 200, "other paths are not affected");
    assert!(service.check("c1")["allowed"] == true);
    let metrics = service.get("/metrics").body;
    assert!(metrics.contains("tollgate_auth_failures_total{token=\"admin\"} 10\n"), "{metrics}");
}

#[test]
fn read_api_limits_guesses_of_the_admin_token() {
    let tokens = [("TOLLGATE_READ_TOKEN", READ), ("TOLLGATE_ADMIN_TOKEN", TOKEN)];
    let service = Service::start_with(&[], &tokens);
    let read = |token: &str| with_token(&service, "GET", "/api/limits", token).status;
    assert_eq!(read(TOKEN), 200);
    let statuses: Vec<u16> = (0..12).map(|_| read(OTHER)).collect();
    assert_eq!(statuses, [[401; 10].as_slice(), &[429; 2]].concat());
    assert_eq!(read(TOKEN), 429, "even though the token is valid");
    assert_eq!(read(READ), 200, "a valid read token is always accepted");
    assert_eq!(with_token(&service, "GET", "/admin/overrides", TOKEN).status, 200);
}

#[test]
fn two_tokens_are_valid_during_rotation() {
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
fn cross_site_requests_are_403() {
    let service = start_with_admin(&[]);
    let valid = format!("Bearer {TOKEN}");
    for (name, value) in
        [("origin", "http://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")]
    {
        let headers = [("authorization", valid.as_str()), (name, value)];
        let reply = service.client().request("PUT", &limits_of("c1"), &headers, &daily_limit(1));
        assert_eq!(reply.status, 403, "{name}: {value}: {}", reply.body);
    }
    assert_eq!(admin(&service, "GET", &limits_of("c1"), "").status, 404);
    let same_site = [("authorization", valid.as_str()), ("origin", "http://tollgate")];
    let reply = service.client().request("PUT", &limits_of("c1"), &same_site, &daily_limit(1));
    assert_eq!(reply.status, 200);
    let preflight = [("origin", "http://evil.example"), ("access-control-request-method", "PUT")];
    let reply = service.client().request("OPTIONS", &limits_of("c1"), &preflight, "");
    assert_eq!(reply.status, 405);
    let allowed = |(name, _): &(String, String)| name.starts_with("access-control");
    assert!(!reply.headers.iter().any(allowed), "{:?}", reply.headers);
}

/// Without a check token, a page whose name resolves to this machine must not decide (DNS rebinding).
#[test]
fn pages_of_foreign_hosts_cannot_call_decision_routes() {
    let service = Service::start(&[]);
    let key = r#"{"key":"c1"}"#;
    let status = |path: &str, headers: &[(&str, &str)]| {
        service.client().request("POST", path, headers, key).status
    };
    let foreign = ("host", "evil.example");
    for path in ["/check", "/peek", "/refund", "/explain"] {
        for page in [("origin", "http://evil.example"), ("sec-fetch-site", "same-origin")] {
            assert_eq!(status(path, &[foreign, page]), 403, "{path} {page:?}");
            assert_eq!(status(path, &[page]), 200, "{path} {page:?}, by a name without a dot");
        }
        assert_eq!(status(path, &[foreign]), 200, "{path}, a program");
    }
    for path in ["/check/batch", "/reserve", "/settle", "/release", "/renew"] {
        assert_eq!(status(path, &[foreign, ("origin", "null")]), 403, "{path}");
    }
    let auth = [foreign, ("origin", "http://evil.example"), ("x-forwarded-uri", "/")];
    assert_eq!(service.client().request("GET", "/auth", &auth, "").status, 200);
}

#[test]
fn requests_without_a_token_do_not_lock_out_the_admin() {
    let service = start_with_admin(&[]);
    let without = || service.client().request("GET", "/admin/audit", &[], "").status;
    assert_eq!([(); 10].map(|()| without()), [401; 10]);
    assert_eq!(without(), 429);
    assert_eq!(admin(&service, "GET", "/admin/audit", "").status, 200);
}

#[test]
fn check_and_read_paths_require_their_tokens() {
    let tokens = [
        ("TOLLGATE_CHECK_TOKEN", CHECK),
        ("TOLLGATE_READ_TOKEN", READ),
        ("TOLLGATE_ADMIN_TOKEN", TOKEN),
    ];
    let service = Service::start_with(&[], &tokens);
    let status = |token: Option<&str>, path: &str, body: &str| {
        let authorization = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> =
            authorization.iter().map(|value| ("authorization", value.as_str())).collect();
        let method = if body.is_empty() { "GET" } else { "POST" };
        service.client().request(method, path, &headers, body).status
    };
    let key = r#"{"key":"c1"}"#;
    for path in ["/check", "/peek", "/refund", "/explain"] {
        assert_eq!(status(None, path, key), 401, "{path}");
        assert_eq!(status(Some(CHECK), path, key), 200, "{path}");
    }
    for (path, body) in [
        ("/check/batch", r#"{"requests":[]}"#),
        ("/release", "{}"),
        ("/renew", "{}"),
        ("/reserve", key),
        ("/settle", "{}"),
    ] {
        assert_eq!(status(None, path, body), 401, "{path}");
        assert_ne!(status(Some(CHECK), path, body), 401, "{path}");
    }
    for path in ["/api/nodes", "/api/counters", "/api/limits", "/api/blocks", "/api/status"] {
        assert_eq!(status(None, path, ""), 401, "{path}");
        assert_eq!(status(Some(READ), path, ""), 200, "{path}");
        assert_eq!(status(Some(TOKEN), path, ""), 200, "{path}: the admin token permits reading");
    }
    assert_eq!(status(Some(READ), "/check", key), 401);
    assert_eq!(status(Some(CHECK), "/api/status", ""), 401);
    assert_eq!(status(Some(READ), "/admin/overrides", ""), 401);
    for path in ["/metrics", "/healthz", "/readyz", "/openapi.json", "/docs"] {
        assert_eq!(status(None, path, ""), 200, "{path}");
    }
}

#[test]
fn valid_check_token_is_accepted_after_failures_of_others() {
    let service = Service::start_with(&[], &[("TOLLGATE_CHECK_TOKEN", CHECK)]);
    let check = |token: &str| {
        let authorization = format!("Bearer {token}");
        let headers = [("authorization", authorization.as_str())];
        service.client().request("POST", "/check", &headers, r#"{"key":"c1"}"#).status
    };
    let statuses: Vec<u16> = (0..12).map(|_| check(OTHER)).collect();
    assert_eq!(statuses, [[401; 10].as_slice(), &[429; 2]].concat());
    assert_eq!(check(CHECK), 200);
}

#[test]
fn invalid_token_settings_fail_without_showing_them() {
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
        ("TOLLGATE_ADMIN_TOKEN_FILE", &scratch.write("long", &"canary".repeat(20_000))),
        ("TOLLGATE_ADMIN_TOKEN_FILE", "/dev/zero"),
    ] {
        let mut command = tollgate(&["serve", "--http", "127.0.0.1:0"]);
        let ended = command.env(name, value).output().unwrap();
        let stderr = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{name}: {stderr}");
        assert!(stderr.starts_with(&format!("tollgate: {name}: ")), "{stderr}");
        assert!(!stderr.contains("canary") && !stderr.contains("hunter2"), "{stderr}");
    }
    let help = run(&["serve", "--help"]).stdout;
    assert!(!help.contains("-token"), "a token is never an argument");
}

#[test]
fn non_loopback_listener_requires_tokens_or_the_flag() {
    let refused = |args: &[&str], tokens: &[(&str, &str)]| {
        let mut command = tollgate(&[&["serve"], args].concat());
        let ended = command.envs(tokens.iter().copied()).output().unwrap();
        assert_eq!(ended.status.code(), Some(2));
        String::from_utf8(ended.stderr).unwrap()
    };
    let (check, read) = (("TOLLGATE_CHECK_TOKEN", CHECK), ("TOLLGATE_READ_TOKEN", READ));
    let public = ["--http", "0.0.0.0:0"];
    assert!(refused(&public, &[]).contains("set TOLLGATE_CHECK_TOKEN"));
    assert!(refused(&public, &[check]).contains("set TOLLGATE_READ_TOKEN"));
    let public_admin = ["--http", "127.0.0.1:0", "--admin", "0.0.0.0:0"];
    let error = refused(&public_admin, &[]);
    assert!(error.contains("--admin: ") && error.contains("set TOLLGATE_READ_TOKEN"), "{error}");

    let start = |args: &[&str], tokens: &[(&str, &str)]| {
        let mut command = tollgate(&[&["serve"], args].concat());
        Service::start_as(command.envs(tokens.iter().copied()))
    };
    let protected = start(&public, &[check, read]);
    assert!(!protected.log().contains("unprotected"), "{}", protected.log());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, protected.address().port()));
    assert_eq!(Client::connect(address).post("/check", r#"{"key":"c1"}"#).status, 401);
    drop(start(&["--http", "0.0.0.0:0", "--admin", "127.0.0.1:0"], &[check]));
    let open = start(&["--http", "0.0.0.0:0", "--allow-unprotected"], &[read]);
    let log = open.log();
    let warnings = log.lines().filter(|line| line.contains("unprotected")).collect::<Vec<_>>();
    assert!(matches!(warnings.as_slice(), [line] if line.contains("/check")), "{log}");
}

#[test]
fn admin_api_moves_to_the_admin_listener() {
    let service = start_with_admin(&["--admin", "127.0.0.1:0"]);
    assert_eq!(admin(&service, "GET", "/admin/overrides", "").status, 404);
    let valid = format!("Bearer {TOKEN}");
    let mut client = Client::connect(service.admin_address());
    let headers = [("authorization", valid.as_str())];
    assert_eq!(client.request("GET", "/admin/overrides", &headers, "").status, 200);
}

#[test]
fn tokens_appear_in_no_output() {
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
    let mut output = String::new();
    for (method, path) in ADMIN_PATHS.into_iter().filter(|(method, _)| *method == "GET") {
        let reply = with_token(&service, method, path, TOKEN);
        output += &format!("{:?}{}", reply.headers, reply.body);
    }
    for path in
        ["/api/status", "/api/limits", "/api/nodes", "/metrics", "/openapi.json", "/nowhere"]
    {
        for token in [READ, OTHER] {
            let reply = with_token(&service, "GET", path, token);
            output += &format!("{:?}{}", reply.headers, reply.body);
        }
    }
    let wrong = service.client().request(
        "POST",
        "/check",
        &[("authorization", &format!("Bearer {OTHER}"))],
        r#"{"key":"c1"}"#,
    );
    output += &format!("{:?}{}", wrong.headers, wrong.body);
    output += &std::fs::read_to_string(scratch.path().join("administration.json")).unwrap();
    let (status, log) = service.stop();
    assert!(status.success());
    assert!(log.contains("override.set"), "{log}");
    output += &log;
    assert_eq!(json!(output.contains("kim")), json!(true), "the output contains the author");
    for secret in [CHECK, READ, TOKEN, OTHER] {
        assert!(!output.contains(secret), "{secret} is in the output");
    }
}
