//! Logging in with a browser: what a cookie is good for, and what it is not.

use serde_json::json;

use crate::admin_client::{TOKEN, a_day, admin, administered, limits_of};
use crate::client::Reply;
use crate::live_client::LiveStream;
use crate::service::{Scratch, Service};

const READ: &str = "a-token-for-reading-0123456789abcd";
/// What our own page sends; the test client's host is `tollgate`.
const PAGE: [(&str, &str); 2] =
    [("origin", "http://tollgate"), ("x-tollgate-request", "dashboard")];

fn log_in(service: &Service, token: &str) -> Reply {
    let body = json!({ "token": token }).to_string();
    service.client().request("POST", "/api/login", &PAGE, &body)
}

/// The cookie of a login.
fn cookie(reply: &Reply) -> String {
    assert_eq!(reply.status, 200, "{}", reply.body);
    let header = reply.header("set-cookie").expect("a cookie");
    assert!(header.ends_with("HttpOnly; SameSite=Strict; Secure"), "{header}");
    header.split(';').next().expect("a value").to_owned()
}

fn ask(service: &Service, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    service.client().request(method, path, headers, body)
}

fn session(service: &Service, headers: &[(&str, &str)]) -> serde_json::Value {
    ask(service, "GET", "/api/session", headers, "").json()
}

fn guarded() -> Service {
    let tokens = [("TOLLGATE_ADMIN_TOKEN", TOKEN), ("TOLLGATE_READ_TOKEN", READ)];
    Service::start_with(&[], &tokens)
}

#[test]
fn a_session_of_an_administrator_changes_what_its_page_asks() {
    let service = guarded();
    let reply = log_in(&service, TOKEN);
    let cookie = cookie(&reply);
    assert!(!cookie.contains(TOKEN));
    let standing = json!({"read": true, "admin": true, "login": true, "administered": true});
    let mut told = reply.json();
    assert!(told.as_object_mut().unwrap().remove("until").unwrap().is_string());
    assert_eq!(told, standing);
    let with = |more: &[(&'static str, &'static str)]| {
        let mut headers = vec![("cookie", &*cookie)];
        headers.extend(more.iter().copied());
        headers
    };
    let put = ask(&service, "PUT", &limits_of("c1"), &with(&PAGE), &a_day(7));
    assert_eq!(put.status, 200, "{}", put.body);
    assert_eq!(ask(&service, "GET", &limits_of("c1"), &with(&[]), "").status, 200);
    for path in ["/api/status", "/api/counters", "/admin/audit", "/admin/overrides"] {
        assert_eq!(ask(&service, "GET", path, &with(&[]), "").status, 200, "{path}");
    }
    let explained = ask(&service, "POST", "/api/explain", &with(&PAGE), r#"{"key":"c1"}"#);
    assert_eq!(explained.json()["answer"]["limit"], 7);
    let audit = admin(&service, "GET", "/admin/audit", "").json();
    let by_token = admin(&service, "PUT", &limits_of("c2"), &a_day(7));
    assert_eq!(by_token.status, 200);
    let entries = admin(&service, "GET", "/admin/audit", "").json();
    assert_eq!(audit["audit"][0]["token"], entries["audit"][0]["token"], "which token is known");
}

#[test]
fn a_cookie_alone_changes_nothing() {
    let service = guarded();
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
            ("PUT", limits_of("c1"), a_day(1)),
            ("DELETE", limits_of("c1"), String::new()),
            ("POST", "/admin/external/clients/c1/reset".to_owned(), String::new()),
            ("POST", "/admin/policy/reload".to_owned(), "{}".to_owned()),
        ] {
            let reply = ask(&service, method, &path, &headers, &body);
            assert_eq!(reply.status, 403, "{method} {headers:?}: {}", reply.body);
        }
    }
    let untyped = [&[("cookie", &*cookie)], &PAGE[..]].concat();
    let reply = ask(&service, "DELETE", &limits_of("c1"), &untyped, "");
    assert_eq!(reply.status, 403, "without a type: {}", reply.body);
    let typed = [&[("content-type", "application/json")], &untyped[..]].concat();
    assert_eq!(ask(&service, "DELETE", &limits_of("c1"), &typed, "").status, 404);
}

#[test]
fn a_session_for_reading_reads_and_nothing_else() {
    let service = guarded();
    assert_eq!(session(&service, &[])["read"], false);
    let cookie = cookie(&log_in(&service, READ));
    let headers = [&[("cookie", &*cookie)], &PAGE[..]].concat();
    let told = session(&service, &headers);
    assert_eq!((&told["read"], &told["admin"]), (&json!(true), &json!(false)));
    assert_eq!(ask(&service, "GET", "/api/status", &headers, "").status, 200);
    let put = ask(&service, "PUT", &limits_of("c1"), &headers, &a_day(7));
    assert_eq!(put.status, 401);
    assert!(put.body.contains("log in with the admin token"), "{}", put.body);
    assert!(LiveStream::open(&service, "").head.starts_with("HTTP/1.1 401"));
    let mut stream = LiveStream::open(&service, &format!("cookie: {cookie}\r\n"));
    stream.next_of("frame");
}

#[test]
fn every_node_with_the_token_knows_a_session_and_it_ends_with_the_token() {
    let [one, other] = [(); 2].map(|()| administered(&[]));
    let cookie = cookie(&log_in(&one, TOKEN));
    assert_eq!(session(&other, &[("cookie", &cookie)])["admin"], true);
    let rotated = Service::start_with(&[], &[("TOLLGATE_ADMIN_TOKEN", READ)]);
    assert_eq!(session(&rotated, &[("cookie", &cookie)])["admin"], false);
    let reply = ask(&rotated, "GET", "/admin/audit", &[("cookie", &cookie)], "");
    assert_eq!(reply.status, 401);
    assert!(reply.body.contains("expired or invalid"), "{}", reply.body);
    // Nobody guessed anything: who has an old cookie is not shut out for it.
    for _ in 0..12 {
        ask(&rotated, "GET", "/admin/audit", &[("cookie", &cookie)], "");
    }
    assert_eq!(log_in(&rotated, READ).status, 200);
}

#[test]
fn wrong_tokens_are_refused_and_soon_not_listened_to() {
    let service = administered(&[]);
    let foreign = [("origin", "http://evil.example"), PAGE[1]];
    let body = json!({ "token": TOKEN }).to_string();
    assert_eq!(ask(&service, "POST", "/api/login", &foreign, &body).status, 403);
    for bad in ["", "{}", r#"{"token":7}"#, r#"{"token":"a","more":1}"#] {
        let reply = ask(&service, "POST", "/api/login", &PAGE, bad);
        let expected = if bad.is_empty() { 403 } else { 400 };
        assert_eq!(reply.status, expected, "{bad}: {}", reply.body);
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
fn without_tokens_there_is_nothing_to_log_in_to() {
    let service = Service::start(&[]);
    assert_eq!(log_in(&service, TOKEN).status, 404);
    let told = session(&service, &[]);
    let expected =
        json!({"read": true, "admin": false, "login": false, "administered": false, "until": null});
    assert_eq!(told, expected);
    let typed = [&[("content-type", "application/json")], &PAGE[..]].concat();
    let out = ask(&service, "POST", "/api/logout", &typed, "");
    assert_eq!(out.status, 204);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
}

#[test]
fn the_page_is_where_operators_are_and_trusts_nobody_else() {
    let scratch = Scratch::new();
    let service = Service::start(&["--admin", "127.0.0.1:0"]);
    assert_eq!(service.get("/").status, 404, "it is not for those who only ask");
    assert_eq!(service.get("/api/session").status, 404);
    drop(scratch);
    let mut operating = crate::client::Client::connect(service.admin_address());
    let page = operating.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    let wanted = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
        img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
    assert_eq!(policy, wanted);
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    let mut parts = 0;
    for after in page.body.split("\"/dashboard/").skip(1) {
        let file = after.split('"').next().unwrap();
        let reply = operating.get(&format!("/dashboard/{file}"));
        assert_eq!(reply.status, 200, "{file}");
        assert_eq!(reply.header("content-security-policy"), Some(wanted));
        parts += 1;
    }
    assert!(parts >= 2, "a script and a style");
    assert_eq!(operating.get("/dashboard/nothing.js").status, 404);
    assert_eq!(operating.get("/dashboard/..%2fopenapi.json").status, 404);
    assert!(!page.body.contains("<script>") && !page.body.contains("style="));
}
