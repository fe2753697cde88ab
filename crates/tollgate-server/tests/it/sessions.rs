//! Browser sessions: login, permissions of the cookie and cross-site protection.

use serde_json::json;

use crate::admin_client::{TOKEN, admin, daily_limit, limits_of, start_with_admin};
use crate::client::Reply;
use crate::live_client::LiveStream;
use crate::service::{Scratch, Service};

const READ: &str = "a-token-for-reading-0123456789abcd";
/// Headers of the dashboard; the host of the test client is `tollgate`.
const PAGE: [(&str, &str); 2] =
    [("origin", "http://tollgate"), ("x-tollgate-request", "dashboard")];

fn log_in(service: &Service, token: &str) -> Reply {
    let body = json!({ "token": token }).to_string();
    service.client().request("POST", "/api/login", &PAGE, &body)
}

/// Returns the cookie of a login response.
fn cookie(reply: &Reply) -> String {
    assert_eq!(reply.status, 200, "{}", reply.body);
    let header = reply.header("set-cookie").expect("a cookie");
    assert!(header.ends_with("HttpOnly; SameSite=Strict; Secure"), "{header}");
    header.split(';').next().expect("a value").to_owned()
}

fn request(
    service: &Service,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    service.client().request(method, path, headers, body)
}

fn session(service: &Service, headers: &[(&str, &str)]) -> serde_json::Value {
    request(service, "GET", "/api/session", headers, "").json()
}

fn start_with_tokens() -> Service {
    let tokens = [("TOLLGATE_ADMIN_TOKEN", TOKEN), ("TOLLGATE_READ_TOKEN", READ)];
    Service::start_with(&[], &tokens)
}

#[test]
fn admin_session_permits_writes_from_the_dashboard() {
    let service = start_with_tokens();
    let reply = log_in(&service, TOKEN);
    let cookie = cookie(&reply);
    assert!(!cookie.contains(TOKEN));
    let expected = json!({"read": true, "admin": true, "login": true, "administered": true});
    let mut permissions = reply.json();
    assert!(permissions.as_object_mut().unwrap().remove("until").unwrap().is_string());
    assert_eq!(permissions, expected);
    let with = |more: &[(&'static str, &'static str)]| {
        let mut headers = vec![("cookie", &*cookie)];
        headers.extend(more.iter().copied());
        headers
    };
    let put = request(&service, "PUT", &limits_of("c1"), &with(&PAGE), &daily_limit(7));
    assert_eq!(put.status, 200, "{}", put.body);
    assert_eq!(request(&service, "GET", &limits_of("c1"), &with(&[]), "").status, 200);
    for path in ["/api/status", "/api/counters", "/admin/audit", "/admin/overrides"] {
        assert_eq!(request(&service, "GET", path, &with(&[]), "").status, 200, "{path}");
    }
    let explained = request(&service, "POST", "/api/explain", &with(&PAGE), r#"{"key":"c1"}"#);
    assert_eq!(explained.json()["answer"]["limit"], 7);
    let audit = admin(&service, "GET", "/admin/audit", "").json();
    let by_token = admin(&service, "PUT", &limits_of("c2"), &daily_limit(7));
    assert_eq!(by_token.status, 200);
    let entries = admin(&service, "GET", "/admin/audit", "").json();
    assert_eq!(
        audit["audit"][0]["token"], entries["audit"][0]["token"],
        "the audit names the token of the session"
    );
}

#[test]
fn cookie_alone_permits_no_write() {
    let service = start_with_tokens();
    let cookie = cookie(&log_in(&service, TOKEN));
    let forged: [&[(&str, &str)]; 6] = [
        &[],
        &[("origin", "http://tollgate")],
        &[("x-tollgate-request", "dashboard")],
        &[("origin", "http://evil.example"), ("x-tollgate-request", "dashboard")],
        &[("origin", "null"), ("x-tollgate-request", "dashboard")],
        &[PAGE[0], PAGE[1], ("sec-fetch-site", "cross-site")],
    ];
    for headers in forged {
        let headers = [&[("cookie", &*cookie)], headers].concat();
        for (method, path, body) in [
            ("PUT", limits_of("c1"), daily_limit(1)),
            ("DELETE", limits_of("c1"), String::new()),
            ("POST", "/admin/external/clients/c1/reset".to_owned(), String::new()),
            ("POST", "/admin/policy/reload".to_owned(), "{}".to_owned()),
        ] {
            let reply = request(&service, method, &path, &headers, &body);
            assert_eq!(reply.status, 403, "{method} {headers:?}: {}", reply.body);
        }
    }
    let untyped = [&[("cookie", &*cookie)], &PAGE[..]].concat();
    let reply = request(&service, "DELETE", &limits_of("c1"), &untyped, "");
    assert_eq!(reply.status, 403, "without Content-Type: {}", reply.body);
    let typed = [&[("content-type", "application/json")], &untyped[..]].concat();
    assert_eq!(request(&service, "DELETE", &limits_of("c1"), &typed, "").status, 404);
}

#[test]
fn read_session_permits_reading_only() {
    let service = start_with_tokens();
    assert_eq!(session(&service, &[])["read"], false);
    let cookie = cookie(&log_in(&service, READ));
    let headers = [&[("cookie", &*cookie)], &PAGE[..]].concat();
    let permissions = session(&service, &headers);
    assert_eq!((&permissions["read"], &permissions["admin"]), (&json!(true), &json!(false)));
    assert_eq!(request(&service, "GET", "/api/status", &headers, "").status, 200);
    let put = request(&service, "PUT", &limits_of("c1"), &headers, &daily_limit(7));
    assert_eq!(put.status, 401);
    assert!(put.body.contains("log in with the admin token"), "{}", put.body);
    assert!(LiveStream::open(&service, "").head.starts_with("HTTP/1.1 401"));
    let mut stream = LiveStream::open(&service, &format!("cookie: {cookie}\r\n"));
    stream.next_of("frame");
}

#[test]
fn session_is_valid_on_every_node_with_the_token() {
    let [one, other] = [(); 2].map(|()| start_with_admin(&[]));
    let cookie = cookie(&log_in(&one, TOKEN));
    assert_eq!(session(&other, &[("cookie", &cookie)])["admin"], true);
    let rotated = Service::start_with(&[], &[("TOLLGATE_ADMIN_TOKEN", READ)]);
    assert_eq!(session(&rotated, &[("cookie", &cookie)])["admin"], false);
    let reply = request(&rotated, "GET", "/admin/audit", &[("cookie", &cookie)], "");
    assert_eq!(reply.status, 401);
    assert!(reply.body.contains("expired or invalid"), "{}", reply.body);
    // An old cookie is not a guess, so it does not count as a failed attempt.
    for _ in 0..12 {
        request(&rotated, "GET", "/admin/audit", &[("cookie", &cookie)], "");
    }
    assert_eq!(log_in(&rotated, READ).status, 200);
}

#[test]
fn login_rejects_and_limits_invalid_tokens() {
    let service = start_with_admin(&[]);
    let foreign = [("origin", "http://evil.example"), PAGE[1]];
    let body = json!({ "token": TOKEN }).to_string();
    assert_eq!(request(&service, "POST", "/api/login", &foreign, &body).status, 403);
    for invalid in ["", "{}", r#"{"token":7}"#, r#"{"token":"a","more":1}"#] {
        let reply = request(&service, "POST", "/api/login", &PAGE, invalid);
        let expected = if invalid.is_empty() { 403 } else { 400 };
        assert_eq!(reply.status, expected, "{invalid}: {}", reply.body);
    }
    for _ in 0..10 {
        let reply = log_in(&service, "wrong");
        assert_eq!(reply.status, 401);
        assert!(reply.header("set-cookie").is_none());
    }
    let reply = log_in(&service, TOKEN);
    assert_eq!(reply.status, 429, "{}", reply.body);
    assert!(reply.header("retry-after").is_some());
    assert!(!service.log().contains(TOKEN));
}

#[test]
fn login_is_disabled_without_tokens() {
    let service = Service::start(&[]);
    assert_eq!(log_in(&service, TOKEN).status, 404);
    let permissions = session(&service, &[]);
    let expected =
        json!({"read": true, "admin": false, "login": false, "administered": false, "until": null});
    assert_eq!(permissions, expected);
    let typed = [&[("content-type", "application/json")], &PAGE[..]].concat();
    let out = request(&service, "POST", "/api/logout", &typed, "");
    assert_eq!(out.status, 204);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
}

#[test]
fn dashboard_is_on_the_admin_listener_with_strict_csp() {
    let scratch = Scratch::new();
    let service = Service::start(&["--admin", "127.0.0.1:0"]);
    assert_eq!(service.get("/").status, 404, "not on the decision listener");
    assert_eq!(service.get("/api/session").status, 404);
    drop(scratch);
    let mut operating = crate::client::Client::connect(service.admin_address());
    let page = operating.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    let expected = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
        img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
    assert_eq!(policy, expected);
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    let mut parts = 0;
    for after in page.body.split("\"/dashboard/").skip(1) {
        let file = after.split('"').next().unwrap();
        let reply = operating.get(&format!("/dashboard/{file}"));
        assert_eq!(reply.status, 200, "{file}");
        assert_eq!(reply.header("content-security-policy"), Some(expected));
        parts += 1;
    }
    assert!(parts >= 2, "a script and a style");
    assert_eq!(operating.get("/dashboard/nothing.js").status, 404);
    assert_eq!(operating.get("/dashboard/..%2fopenapi.json").status, 404);
    assert!(!page.body.contains("<script>") && !page.body.contains("style="));
}

#[test]
fn names_of_other_sites_do_not_reach_the_dashboard() {
    let service = Service::start_with(
        &["--allowed-hosts", "limits.example"],
        &[("TOLLGATE_ADMIN_TOKEN", TOKEN)],
    );
    let status = |host: &str, path: &str| {
        let mut client = service.client();
        client.send(format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes()).unwrap();
        client.reply().unwrap().status
    };
    for path in ["/", "/dashboard/page.js", "/api/status", "/api/session", "/admin/overrides"] {
        assert_eq!(status("evil.example:8080", path), 403, "{path}");
        let own = [service.address().to_string(), "limits.example".to_owned()];
        for host in own {
            assert_ne!(status(&host, path), 403, "{path} under {host}");
        }
    }
    // Their callers are proxies and monitoring, which send the names of clients.
    for path in ["/auth", "/metrics", "/healthz", "/readyz"] {
        assert_eq!(status("evil.example", path), 200, "{path}");
    }
}

#[test]
fn responses_of_operator_routes_are_not_sniffed() {
    let service = Service::start(&[]);
    for path in ["/", "/dashboard/page.js", "/api/status", "/api/none", "/metrics", "/docs"] {
        let reply = service.get(path);
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
}
