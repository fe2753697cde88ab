//! Forward auth, called directly: facts, trust, refusals and settings.

use std::io;

use crate::auth_proxy::example;
use crate::client::{Client, Reply};
use crate::service::{Scratch, Service, run};

const TOKEN: &str = "a-token-for-checks-0123456789abcdef";

/// A limit per client for `/api/**`, large enough for every request of a test.
const POLICY: &str = "\
version: 1
facts: { client: [{ header: x-client-id }, { header: authorization, digest: true }, ip] }
rules:
  - { name: api, match: { path: /api/**, method: GET, host: h.example }, limits: [{ rate: 100000/h, name: hour }] }
  - { name: once, match: { path: /once }, per: [ip], limits: [1/h] }
  - { name: never, match: { path: /never }, limits: [0] }
  - { name: root, match: { path: / }, limits: [80000/h] }
  - { name: secret, match: { headers: { cookie: 'sha256:*' }, path: /cookie }, limits: [7/h] }
  - { name: other, per: [ip], limits: [90000/h] }
";

/// The limits of the rules `api`, `other` and `root`, which responses show.
const API: &str = "100000";
const OTHER: &str = "90000";
const ROOT: &str = "80000";

fn start(args: &[&str]) -> (Scratch, Service) {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", POLICY);
    let service = Service::start(&[&["--policy", &policy], args].concat());
    (scratch, service)
}

fn trusting() -> (Scratch, Service) {
    start(&["--trusted-proxies", "127.0.0.1,10.0.0.0/8"])
}

/// An endpoint, with the headers by which a proxy describes a request for a URI.
#[derive(Clone, Copy)]
struct Endpoint {
    path: &'static str,
    uri: &'static str,
    method: &'static str,
    host: &'static str,
    /// Headers of the other endpoint, which this one must not read.
    others: &'static [&'static str],
    refusal: u16,
}

const FORWARDED: Endpoint = Endpoint {
    path: "/auth",
    uri: "x-forwarded-uri",
    method: "x-forwarded-method",
    host: "x-forwarded-host",
    others: &["x-original-uri", "x-original-method", "x-original-url", "x-real-ip", "forwarded"],
    refusal: 429,
};
const NGINX: Endpoint = Endpoint {
    path: "/auth/nginx",
    uri: "x-original-uri",
    method: "x-original-method",
    host: "host",
    others: &[
        "x-forwarded-uri",
        "x-forwarded-method",
        "x-forwarded-host",
        "x-real-ip",
        "forwarded",
    ],
    refusal: 403,
};

impl Endpoint {
    /// Sends an auth request for this URI from 203.0.113.7, with further headers.
    fn send(self, client: &mut Client, uri: &str, further: &[(&str, &str)]) -> Reply {
        self.try_send(client, uri, further).expect("the server responds")
    }

    fn try_send(
        self,
        client: &mut Client,
        uri: &str,
        further: &[(&str, &str)],
    ) -> io::Result<Reply> {
        let mut text = format!(
            "GET {}?q=/x HTTP/1.1\r\n{}: h.example\r\n{}: {uri}\r\n{}: GET\r\nx-forwarded-for: 203.0.113.7\r\n",
            self.path, self.host, self.uri, self.method
        );
        for (name, value) in further {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        client.send(text.as_bytes()).and_then(|()| client.reply())
    }
}

fn limit(reply: &Reply) -> Option<&str> {
    reply.header("x-ratelimit-limit")
}

fn remaining(reply: &Reply) -> u64 {
    let remaining = reply.header("x-ratelimit-remaining").expect("a rate limit header");
    remaining.parse().expect("a number")
}

/// Spellings of `/api/users`.
fn spellings() -> Vec<String> {
    let mut paths: Vec<String> = ["/api/users", "//api/users", "/x/../api/users", "/./api//users"]
        .map(str::to_owned)
        .to_vec();
    let encoded = |text: &str, mask: u32| -> String {
        let escape = |(at, char): (usize, char)| match mask >> at & 1 {
            1 if mask.is_multiple_of(3) => format!("%{:02x}", u32::from(char)),
            1 => format!("%{:02X}", u32::from(char)),
            _ => char.to_string(),
        };
        text.chars().enumerate().map(escape).collect()
    };
    for mask in 1..8 {
        let (api, dots) = (encoded("api", mask), encoded("..", mask & 3));
        for start in ["", "/", "/.", "/%2e", "/x/..", "/x/%2E%2e", "/../..", "//x//.."] {
            paths.push(format!("{start}/{api}/users"));
        }
        paths.push(format!("/{api}/x/{dots}/users?path=/other"));
        paths.push(format!("http://other.example/{api}/users"));
    }
    paths
}

#[test]
fn spoofed_headers_and_encoded_paths_change_nothing() {
    let (_scratch, service) = trusting();
    let mut client = service.client();
    let (mut sent, spellings) = (0, spellings());
    for endpoint in [FORWARDED, NGINX] {
        let spoofs = |value: &'static str| endpoint.others.iter().map(move |name| (*name, value));
        let values = ["/other", "POST", "198.51.100.9", "for=198.51.100.9", "/api/%zz", "a,b"];
        let spoofs: Vec<_> = values.into_iter().flat_map(spoofs).collect();
        for (number, spelling) in spellings.iter().enumerate() {
            for (name, value) in spoofs.iter().skip(number % 3).step_by(3) {
                let reply = endpoint.send(&mut client, spelling, &[(name, value)]);
                let context = format!("{} {spelling} {name}: {value}", endpoint.path);
                assert_eq!((reply.status, limit(&reply)), (200, Some(API)), "{context}");
                sent += 1;
                assert_eq!(remaining(&reply), 100_000 - sent, "one client: {context}");
            }
        }
    }
    let before = remaining(&FORWARDED.send(&mut client, "/api/users", &[]));
    let mut variants = 0;
    for endpoint in [FORWARDED, NGINX] {
        for forged in 0..540 {
            let spelling = &spellings[forged % spellings.len()];
            // The proxy appends the address of the client to the header that the client sent.
            let forged = format!("198.51.100.{}, 203.0.113.7, 10.0.0.2", forged % 250);
            let text = format!(
                "GET {} HTTP/1.1\r\n{}: h.example:80\r\n{}: {spelling}\r\n{}: GET\r\n\
                 x-forwarded-for: 198.51.100.1\r\nx-forwarded-for: {forged}\r\n\r\n",
                endpoint.path, endpoint.host, endpoint.uri, endpoint.method
            );
            client.send(text.as_bytes()).expect("sent");
            variants += 1;
            let reply = client.reply().expect("a reply");
            assert_eq!(
                remaining(&reply),
                before - variants,
                "{} {spelling} {forged}",
                endpoint.path
            );
        }
    }
    assert!(variants >= 1000, "{variants}");
}

#[test]
fn other_paths_methods_and_hosts_are_other_facts() {
    let (_scratch, service) = trusting();
    let mut client = service.client();
    for endpoint in [FORWARDED, NGINX] {
        for uri in ["", "?q=/api/users", "/", "http://h.example", "http://h.example?q=/api/users"] {
            let reply = endpoint.send(&mut client, uri, &[]);
            assert_eq!((reply.status, limit(&reply)), (200, Some(ROOT)), "{uri:?}");
        }
        for uri in ["/apis", "/api%2Fusers", "/x/api/users", "/API/users", "*"] {
            let reply = endpoint.send(&mut client, uri, &[]);
            assert_eq!((reply.status, limit(&reply)), (200, Some(OTHER)), "{uri}");
        }
        let refused = endpoint.send(&mut client, "/never", &[]);
        assert_eq!((refused.status, refused.header("retry-after")), (endpoint.refusal, None));
        let cookie = endpoint.send(&mut client, "/cookie", &[("cookie", "s3cret")]);
        assert_eq!(limit(&cookie), Some("7"), "a secret header is matched by its digest");
    }
    let any_method = client.request("DELETE", "/auth", &[("x-forwarded-method", "POST")], "");
    assert_eq!((any_method.status, limit(&any_method)), (200, Some(OTHER)));
    assert_eq!(client.request("POST", "/auth/nginx", &[], "{}").status, 200);
    let unknown = client.get("/auth/other");
    assert_eq!(unknown.status, 404);
}

#[test]
fn clients_are_identified_by_the_sources_of_the_policy() {
    let (_scratch, service) = trusting();
    let mut client = service.client();
    let full = 99_999;
    for endpoint in [FORWARDED, NGINX] {
        let mut left = |headers: &[(&str, &str)]| {
            let reply = endpoint.send(&mut client, "/api/users", headers);
            assert_eq!(reply.status, 200, "{reply:?}");
            remaining(&reply)
        };
        let name = endpoint.path;
        assert_eq!(left(&[("x-client-id", name)]), full, "another client is untouched");
        assert_eq!(left(&[("x-client-id", name)]), full - 1);
        assert_eq!(left(&[("authorization", name)]), full);
        assert_eq!(left(&[("authorization", name), ("x-client-id", name)]), full - 2);
        let twice = left(&[("x-client-id", name), ("x-client-id", "other")]);
        assert_eq!(twice, left(&[]) + 1, "an ambiguous header is missing: the address counts");
    }
}

#[test]
fn example_policy_limits_addresses_with_invented_credentials() {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", &example("policy.yaml"));
    let service = Service::start(&["--policy", &policy, "--trusted-proxies", "127.0.0.1"]);
    let mut client = service.client();
    // The limit refills while the test runs, so that more than 1000 requests may pass.
    let mut replies = (0..5000).map(|number| {
        let credentials = format!("Bearer {number}");
        FORWARDED.send(&mut client, "/", &[("authorization", &credentials)])
    });
    let refused = replies.find(|reply| reply.status != 200).expect("the address is limited");
    assert_eq!((refused.status, limit(&refused)), (429, Some("1000")), "{refused:?}");
}

#[test]
fn refusals_have_the_status_of_the_endpoint() {
    let (_scratch, service) = trusting();
    let mut client = service.client();
    for (endpoint, uri) in [(FORWARDED, "/once"), (NGINX, "/%6fnce")] {
        // Both endpoints count the same client.
        let mut send = || endpoint.send(&mut client, uri, &[]);
        if endpoint.refusal == 429 {
            let passed = send();
            assert_eq!((passed.status, &*passed.body), (200, ""));
            assert_eq!(passed.header("x-tollgate-status"), None);
        }
        let refused = send();
        assert_eq!(refused.status, endpoint.refusal, "{refused:?}");
        let wait: u64 = refused.header("retry-after").expect("a wait").parse().expect("seconds");
        assert!((1..=3600).contains(&wait), "{wait}");
        assert_eq!(refused.header("cache-control"), Some("no-store"));
        assert_eq!(refused.json()["error"], "rate_limit_exceeded");
        assert_eq!(refused.json()["retry_after"], wait);
        assert_eq!(remaining(&refused), 0);
        let status = (endpoint.refusal == 403).then_some("429");
        assert_eq!(refused.header("x-tollgate-status"), status);
    }
    for (uri, status, error) in [
        (format!("/{}", "a".repeat(1024)), 414, "path_too_long"),
        ("/api/%zz".to_owned(), 400, "path_invalid"),
        ("api/users".to_owned(), 400, "path_invalid"),
    ] {
        let refused = FORWARDED.send(&mut client, &uri, &[]);
        assert_eq!((refused.status, &refused.json()["error"]), (status, &error.into()));
        let refused = NGINX.send(&mut client, &uri, &[]);
        let sent = refused.header("x-tollgate-status");
        assert_eq!((refused.status, sent), (403, Some(&*status.to_string())));
    }
    for endpoint in [FORWARDED, NGINX] {
        let twice = endpoint.send(&mut client, "/other", &[(endpoint.uri, "/api/users")]);
        assert!([400, 403].contains(&twice.status), "two paths are refused: {twice:?}");
    }
}

#[test]
fn trusted_proxies_may_send_larger_heads() {
    let (long, short) = ("v".repeat(6600), "v".to_owned());
    let (_scratch, trusting) = trusting();
    let (_other_scratch, distrusting) = start(&["--trusted-proxies", "10.0.0.0/8"]);
    // The number of headers, besides the four that `send` adds, and their value.
    // hyper may read more than the maximum size at once.
    for (service, count, value, is_accepted) in [
        (&trusting, 9, &long, true),
        (&trusting, 30, &long, false),
        (&trusting, 252, &short, true),
        (&trusting, 253, &short, false),
        (&distrusting, 2, &long, true),
        (&distrusting, 9, &long, false),
        (&distrusting, 60, &short, true),
        (&distrusting, 61, &short, false),
    ] {
        let further = vec![("x-other", &**value); count];
        let reply = FORWARDED.try_send(&mut service.client(), "/api/users", &further);
        // The server may close the connection before it has read the whole head.
        let status = reply.map_or(431, |reply| reply.status);
        assert_eq!(status, if is_accepted { 200 } else { 431 }, "{count} of {}", value.len());
    }
}

#[test]
fn untrusted_peers_are_the_client() {
    let (_scratch, service) = start(&["--trusted-proxies", "10.0.0.0/8"]);
    let mut client = service.client();
    for (endpoint, left) in [(FORWARDED, 89_999), (NGINX, 89_998)] {
        let reply = endpoint.send(&mut client, "/api/%zz", &[("x-client-id", "c1")]);
        assert_eq!((reply.status, limit(&reply)), (200, Some(OTHER)), "no header is a fact");
        assert_eq!(remaining(&reply), left, "the peer is counted");
    }
    service.wait_for_log("outside --trusted-proxies");
    assert_eq!(service.log().matches("outside --trusted-proxies").count(), 1);
    let (_scratch, service) = start(&[]);
    for _ in 0..2 {
        assert_eq!(limit(&FORWARDED.send(&mut service.client(), "/api", &[])), Some(OTHER));
    }
    service.wait_for_log("forward auth without --trusted-proxies");
    assert_eq!(service.log().matches("forward auth without --trusted-proxies").count(), 1);
}

#[test]
fn missing_headers_are_unknown_facts_and_logged_once() {
    let (_scratch, service) = trusting();
    let mut client = service.client();
    for _ in 0..3 {
        let reply = client.request("GET", "/auth", &[], "");
        assert_eq!((reply.status, limit(&reply)), (200, Some(OTHER)));
    }
    for header in ["x-forwarded-for", "x-forwarded-uri", "x-forwarded-method", "x-forwarded-host"] {
        service.wait_for_log(header);
        assert_eq!(service.log().matches(header).count(), 1, "{header}: {}", service.log());
    }
    assert!(!service.log().contains("concurrency limits"));
}

#[test]
fn token_is_expected_in_its_own_header() {
    let scratch = Scratch::new();
    let rules = "rules: [{ name: jobs, per: [], limits: [{ concurrency: 5, ttl: 1h }] }]";
    let policy = scratch.write("policy.yaml", &format!("version: 1\n{rules}\n"));
    let args = ["--policy", &policy, "--auth-headers", "draft11,draft6", "--auth-body", "problem"];
    let environment =
        [("TOLLGATE_CHECK_TOKEN", TOKEN), ("TOLLGATE_TRUSTED_PROXIES", "127.0.0.1, ::1")];
    let service = Service::start_with(&args, &environment);
    service.wait_for_log("forward auth has no call to release slots");
    let mut client = service.client();
    let bearer = format!("Bearer {TOKEN}");
    let wrong = [("authorization", &*bearer)];
    let refused = FORWARDED.send(&mut client, "/", &wrong);
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, None));
    assert!(refused.body.contains("X-Tollgate-Token"), "{}", refused.body);
    let refused = NGINX.send(&mut client, "/", &[("x-tollgate-token", "wrong")]);
    assert_eq!((refused.status, refused.header("x-tollgate-status")), (403, Some("401")));
    let token = [("x-tollgate-token", TOKEN)];
    for left in (0..5).rev() {
        let reply = FORWARDED.send(&mut client, "/", &token);
        assert_eq!(reply.header("ratelimit-remaining"), Some(&*left.to_string()), "{reply:?}");
        assert!(reply.header("ratelimit-policy").is_some() && limit(&reply).is_none());
    }
    let refused = FORWARDED.send(&mut client, "/", &token);
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    assert_eq!(refused.json()["title"], "Quota exceeded");
    let metrics = service.get("/metrics").body;
    assert!(metrics.contains("tollgate_requests_total{frontend=\"http\"} 6\n"), "{metrics}");
}

#[test]
fn invalid_settings_are_usage_errors() {
    for (flag, value, reason) in [
        ("--trusted-proxies", "10.0.0.1/8", "did you mean \"10.0.0.0/8\""),
        ("--auth-headers", "x-unix,x-delta", "use one of them"),
        ("--auth-headers", "providers", "is not a style"),
    ] {
        let ended = run(&["serve", "--http", "127.0.0.1:0", flag, value]);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(&format!("{flag}: ")), "{}", ended.stderr);
        assert!(ended.stderr.contains(reason), "{}", ended.stderr);
    }
}
