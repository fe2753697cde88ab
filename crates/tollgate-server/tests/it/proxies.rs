//! nginx, `HAProxy`, Traefik and Caddy with the configurations of `examples/proxies`, as `docs/PROXIES.md` describes them.

use tollgate_testkit::server::{Flavor, Server};

use crate::auth_proxy::{AuthProxy, CADDY, HAPROXY, NGINX, ProxyKind, TRAEFIK, example};
use crate::client::{Client, Reply};
use crate::envoy_proxy::App;
use crate::service::{Scratch, Service};

/// The limit of the rule `login` in the example.
const LIMIT: usize = 10;

/// Headers by which a client may try to choose its identity and path.
const SPOOFED: [(&str, &str); 9] = [
    ("X-Forwarded-For", "198.51.100.1"),
    ("X-Forwarded-Uri", "/"),
    ("X-Forwarded-Method", "POST"),
    ("X-Forwarded-Host", "other.example"),
    ("X-Original-URI", "/"),
    ("X-Original-Method", "POST"),
    ("X-Real-IP", "198.51.100.1"),
    ("Forwarded", "for=198.51.100.1"),
    ("X-Tollgate-Status", "200"),
];

/// Sends a request with all spoofed headers.
fn get(client: &mut Client, path: &str) -> Reply {
    client.request("GET", path, &SPOOFED, "")
}

fn is_passed(reply: &Reply) -> bool {
    reply.status == 200 && reply.body == App::BODY
}

/// Uses up the limit of a client over one connection, and returns the refusal.
fn assert_limited(client: &mut Client) -> Reply {
    let paths = ["/login/a", "/%6cogin/b?q=/", "//login/c", "/x/../login/d", "/login"];
    for number in 0..LIMIT {
        let path = paths[number % paths.len()];
        let reply = get(client, path);
        assert!(is_passed(&reply), "request {number}, {path}: {reply:?}");
    }
    let refused = get(client, "/login/a");
    assert_eq!(refused.status, 429, "{refused:?}");
    let wait: u64 = refused.header("retry-after").expect("a wait").parse().expect("seconds");
    assert!((1..=3600).contains(&wait), "{wait}");
    for path in paths {
        assert_eq!(get(client, path).status, 429, "{path}");
    }
    assert!(is_passed(&get(client, "/other")), "other paths are not limited");
    refused
}

/// Sends a request with this number of headers.
fn send_headers(client: &mut Client, count: usize) -> u16 {
    let names: Vec<String> = (0..count).map(|number| format!("x-header-{number}")).collect();
    let headers: Vec<_> = names.iter().map(|name| (&**name, "v")).collect();
    client.request("GET", "/other", &headers, "").status
}

/// Runs the checks of every proxy. `too_large` is its response to a request with 300 headers.
fn smoke_test(kind: ProxyKind, too_large: u16) -> (Reply, Reply) {
    let (scratch, app, redis) = (Scratch::new(), App::start(), Server::start(Flavor::Redis));
    let policy = scratch.write("policy.yaml", &example("policy.yaml"));
    let url = redis.url();
    let service =
        Service::start(&["--policy", &policy, "--redis", &url, "--trusted-proxies", "127.0.0.1"]);
    let proxy = AuthProxy::start(kind, service.address(), &app);
    let (mut client, before) = (proxy.client_from(2), app.requests());
    let refused = assert_limited(&mut client);
    assert_eq!(app.requests(), before + LIMIT + 1, "refused requests do not reach the app");
    let mut other = proxy.client_from(3);
    assert!(is_passed(&get(&mut other, "/login/a")), "another client is not limited");
    assert!(is_passed(&get(&mut other, "/payments/1")));
    // A request target without a path. The log must not report a missing URI.
    let raw = other.send(b"GET http://h.example HTTP/1.1\r\nhost: h.example\r\n\r\n");
    let reply = raw.and_then(|()| other.reply()).expect("the proxy responds");
    assert!(is_passed(&reply), "{reply:?}");
    assert_eq!(send_headers(&mut other, 90), 200);
    assert_eq!(send_headers(&mut proxy.client_from(5), 300), too_large);
    drop(redis);
    assert_limited(&mut proxy.client_from(4));
    let denied = get(&mut other, "/payments/1");
    assert_eq!(denied.status, 503, "the rule denies without the store: {denied:?}");
    assert!(is_passed(&get(&mut other, "/login/a")));
    let log = service.log();
    assert!(!log.contains("did not send this header"), "{log}");
    assert!(!log.contains("--trusted-proxies"), "{log}");
    (refused, denied)
}

#[test]
fn nginx_limits_requests() {
    let (refused, denied) = smoke_test(NGINX, 500);
    assert_eq!(refused.header("x-tollgate-status"), None, "{refused:?}");
    assert!(denied.header("retry-after").is_some(), "{denied:?}");
}

#[test]
fn nginx_keeps_its_own_refusals() {
    let (app, service) = (App::start(), Service::start(&["--trusted-proxies", "127.0.0.1"]));
    let begin = "# tollgate: begin";
    // nginx itself refuses invalid escapes, so the second location sends an invalid path to Tollgate.
    let locations = "location /private { deny all; }
        location /invalid { auth_request /invalid-path; proxy_pass http://127.0.0.1:8000; }
        location = /invalid-path { internal; proxy_pass http://127.0.0.1:8080/auth/nginx; proxy_set_header X-Original-URI x; }";
    let edit = |example: String| example.replace(begin, &format!("{locations}\n{begin}"));
    let proxy = AuthProxy::start_with(NGINX, service.address(), &app, edit);
    let mut client = proxy.client_from(2);
    assert_eq!(client.get("/private").status, 403);
    assert_eq!(client.get("/invalid").status, 400);
    // nginx closes the connection after 400.
    assert!(is_passed(&proxy.client_from(2).get("/other")));
}

#[test]
fn haproxy_limits_requests() {
    let (refused, denied) = smoke_test(HAPROXY, 400);
    assert_eq!(refused.json()["error"], "rate_limit_exceeded");
    assert_eq!(denied.json()["error"], "rate_limiter_unavailable");
}

#[test]
fn traefik_limits_requests() {
    let (refused, denied) = smoke_test(TRAEFIK, 431);
    assert_eq!(refused.json()["error"], "rate_limit_exceeded");
    assert_eq!(denied.json()["error"], "rate_limiter_unavailable");
}

#[test]
fn caddy_limits_requests() {
    let (refused, denied) = smoke_test(CADDY, 431);
    assert_eq!(refused.json()["error"], "rate_limit_exceeded");
    assert_eq!(denied.json()["error"], "rate_limiter_unavailable");
}

#[test]
fn examples_have_few_lines_for_tollgate() {
    for kind in [NGINX, HAPROXY, TRAEFIK, CADDY] {
        let (mut lines, mut is_inside) = (0, false);
        for file in kind.files.iter().filter(|file| !file.ends_with(".lua")) {
            for line in example(file).lines() {
                match line.trim() {
                    "# tollgate: begin" => is_inside = true,
                    "# tollgate: end" => is_inside = false,
                    _ => lines += usize::from(is_inside),
                }
            }
        }
        assert!((1..=10).contains(&lines) && !is_inside, "{kind:?}: {lines} lines");
    }
    assert!(example("haproxy.lua").lines().count() <= 40);
}
