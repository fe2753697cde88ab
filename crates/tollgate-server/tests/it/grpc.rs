//! The rate limit service over gRPC: every field of requests and responses.

use tonic::Code;

use crate::grpc_client::{
    DescriptorStatus, OK, OVER_LIMIT, RateLimitDescriptor, RateLimitOverride, RateLimitRequest,
    descriptor, request, start,
};
use crate::service::Scratch;

const YEAR: i32 = 6;

/// Windows outlast any test. The default limit does not apply to gRPC.
const POLICY: &str = "
version: 1
defaults: { limit: 1/d }
rules:
  - { name: path, match: { facts: { domain: edge, descriptor: path=* } }, per: [domain, descriptor], limits: [{ rate: 3/year, align: year }] }
  - { name: user, match: { facts: { domain: edge, descriptor: user=* } }, per: [domain, descriptor], limits: [{ rate: 5/d, algorithm: fixed_window }] }
  - { name: odd, match: { facts: { descriptor: odd=* } }, per: [descriptor], limits: [{ rate: 4/90min, algorithm: token_bucket, burst: 7, name: slow }] }
  - { name: free, match: { facts: { descriptor: free=* } }, unlimited: true }
  - { name: quiet, mode: shadow, match: { facts: { descriptor: quiet=* } }, per: [descriptor], limits: [2/d], next: { limits: [1/d] } }
  - { name: second, match: { facts: { descriptor_index: '1', 'entry:tier': gold } }, per: ['entry:tier'], limits: [6/d] }
  - { name: closed, match: { facts: { descriptor: closed=* } }, per: [descriptor], limits: [0] }
";

fn policy(scratch: &Scratch) -> [String; 2] {
    ["--policy".to_owned(), scratch.write("policy.yaml", POLICY)]
}

macro_rules! serve {
    ($scratch:ident, $service:ident, $client:ident $(, $arg:expr)*) => {
        let $scratch = Scratch::new();
        let policy = policy(&$scratch);
        let args: Vec<&str> = policy.iter().map(String::as_str).chain([$($arg),*]).collect();
        let ($service, $client) = start(&args);
        let _ = &$service;
    };
}

fn with_hits(descriptor: RateLimitDescriptor, hits: u64) -> RateLimitDescriptor {
    RateLimitDescriptor { hits_addend: Some(hits), ..descriptor }
}

fn refund(descriptor: RateLimitDescriptor, hits: u64) -> RateLimitDescriptor {
    RateLimitDescriptor { is_negative_hits: true, ..with_hits(descriptor, hits) }
}

fn with_limit(descriptor: RateLimitDescriptor, count: u32, unit: i32) -> RateLimitDescriptor {
    let limit = RateLimitOverride { requests_per_unit: count, unit };
    RateLimitDescriptor { limit: Some(limit), ..descriptor }
}

fn name(status: &DescriptorStatus) -> &str {
    status.current_limit.as_ref().map_or("", |limit| &limit.name)
}

#[test]
fn reports_the_limit_and_what_remains() {
    serve!(scratch, service, client);
    for remaining in [2, 1, 0] {
        let response = client.call(request("edge", [descriptor(&[("path", "/a")])])).unwrap();
        assert_eq!(response.overall_code, OK);
        let [status] = &*response.statuses else { panic!("{response:?}") };
        assert_eq!((status.code, status.limit_remaining), (OK, remaining));
        let limit = status.current_limit.as_ref().unwrap();
        assert_eq!((limit.requests_per_unit, limit.unit, &*limit.name), (3, YEAR, "path/year"));
        let reset = status.duration_until_reset.unwrap();
        assert!((0..=366 * 86_400).contains(&reset.seconds), "{reset:?}");
    }
    let response = client.call(request("edge", [descriptor(&[("path", "/a")])])).unwrap();
    assert_eq!((response.overall_code, response.statuses[0].code), (OVER_LIMIT, OVER_LIMIT));
    assert_eq!(response.statuses[0].limit_remaining, 0);
    assert_eq!(name(&response.statuses[0]), "path/year");
    assert_eq!(client.status("edge", &[("path", "/b")]).limit_remaining, 2, "another value");
    assert_eq!(client.status("other", &[("path", "/a")]).current_limit, None, "another domain");
}

#[test]
fn decides_descriptors_independently_and_in_order() {
    serve!(scratch, service, client);
    let path = || with_hits(descriptor(&[("path", "/a")]), 3);
    assert_eq!(client.call(request("edge", [path()])).unwrap().overall_code, OK);
    let response = client
        .call(request(
            "edge",
            [
                descriptor(&[("user", "u")]),
                path(),
                descriptor(&[("unknown", "x")]),
                descriptor(&[("free", "x")]),
                descriptor(&[("user", "u")]),
                with_hits(descriptor(&[("odd", "1")]), 2),
            ],
        ))
        .unwrap();
    assert_eq!(response.overall_code, OVER_LIMIT);
    let statuses: Vec<_> = response
        .statuses
        .iter()
        .map(|status| (status.code, name(status), status.limit_remaining))
        .collect();
    assert_eq!(
        statuses,
        [
            (OK, "user/86400s", 4),
            (OVER_LIMIT, "path/year", 0),
            (OK, "", 0),
            (OK, "", u32::MAX),
            (OK, "user/86400s", 3),
            (OK, "odd/slow", 5),
        ],
        "a refused descriptor neither stops the others nor consumes"
    );
    let many = (0..100).map(|number| descriptor(&[("path", &format!("/{number}"))]));
    let response = client.call(request("edge", many)).unwrap();
    assert!(response.statuses.iter().all(|status| status.limit_remaining == 2));
    assert_eq!(response.statuses.len(), 100);
    // The position of a descriptor and its entries are facts.
    let gold = || descriptor(&[("tier", "gold"), ("tier", "silver")]);
    let response = client.call(request("any", [gold(), gold()])).unwrap();
    let names: Vec<_> = response.statuses.iter().map(name).collect();
    assert_eq!(names, ["", "second/86400s"]);
}

#[test]
fn counts_hits_peeks_and_refunds() {
    serve!(scratch, service, client);
    let user = || descriptor(&[("user", "u")]);
    let remaining = |request: RateLimitRequest| {
        let status = client.call(request).unwrap().statuses.remove(0);
        (status.code, status.limit_remaining)
    };
    let hits = |hits_addend| RateLimitRequest { hits_addend, ..request("edge", [user()]) };
    assert_eq!(remaining(hits(2)), (OK, 3));
    assert_eq!(remaining(hits(0)), (OK, 2), "0 of the request means 1");
    let own = RateLimitRequest { hits_addend: 2, ..request("edge", [with_hits(user(), 1)]) };
    assert_eq!(remaining(own), (OK, 1), "the descriptor's hits take precedence");
    assert_eq!(remaining(request("edge", [with_hits(user(), 0)])), (OK, 1), "a peek");
    assert_eq!(remaining(hits(2)), (OVER_LIMIT, 0), "all or nothing");
    assert_eq!(remaining(request("edge", [with_hits(user(), 0)])), (OK, 1));
    assert_eq!(remaining(hits(1)), (OK, 0));
    assert_eq!(remaining(request("edge", [with_hits(user(), 0)])), (OVER_LIMIT, 0));
    assert_eq!(remaining(request("edge", [refund(user(), 2)])), (OK, 2));
    assert_eq!(remaining(request("edge", [refund(user(), 0)])), (OK, 2), "a peek");
    assert_eq!(remaining(request("edge", [refund(user(), 99)])), (OK, 5), "never above full");
    assert_eq!(remaining(request("edge", [with_hits(user(), u64::MAX)])), (OVER_LIMIT, 0));
    let negative = RateLimitRequest {
        hits_addend: 3,
        ..request("edge", [RateLimitDescriptor { is_negative_hits: true, ..user() }])
    };
    assert_eq!(remaining(hits(4)), (OK, 1));
    assert_eq!(remaining(negative), (OK, 4), "hits of the request are returned too");
}

#[test]
fn descriptor_limit_replaces_the_limits_of_its_rule() {
    serve!(scratch, service, client);
    let status =
        |descriptor| client.call(request("edge", [descriptor])).unwrap().statuses.remove(0);
    let path = || descriptor(&[("path", "/own")]);
    for (remaining, code) in [(1, OK), (0, OK), (0, OVER_LIMIT)] {
        let own = status(with_limit(path(), 2, YEAR));
        assert_eq!((own.code, own.limit_remaining), (code, remaining));
        let limit = own.current_limit.unwrap();
        assert_eq!((limit.requests_per_unit, limit.unit, &*limit.name), (2, YEAR, "path/year"));
    }
    assert_eq!(status(path()).limit_remaining, 0, "counted under the rule: 3 of 3 are used");
    let unmatched = || with_limit(descriptor(&[("none", "x")]), 2, YEAR);
    assert_eq!(
        (status(unmatched()).limit_remaining, name(&status(unmatched()))),
        (1, "inline/year")
    );
    assert_eq!(status(unmatched()).code, OVER_LIMIT);
    let other = with_limit(descriptor(&[("none", "y")]), 2, YEAR);
    assert_eq!(status(other).limit_remaining, 1, "another descriptor");
    let other = client.call(request("other", [unmatched()])).unwrap();
    assert_eq!(other.statuses[0].limit_remaining, 1, "another domain");
    for unit in 1..=7 {
        let reported = status(with_limit(descriptor(&[("unit", &unit.to_string())]), 9, unit));
        let limit = reported.current_limit.unwrap();
        assert_eq!((limit.unit, limit.requests_per_unit), (unit, 9));
        assert_eq!(reported.limit_remaining, 8);
    }
    assert_eq!(status(with_limit(path(), 0, YEAR)).code, OVER_LIMIT, "a limit of 0 is a block");
    let quiet = status(with_limit(descriptor(&[("quiet", "x")]), 0, YEAR));
    assert_eq!(quiet.code, OK, "a shadow rule refuses nothing");
}

#[test]
fn units_without_a_name_shadow_rules_and_blocks() {
    serve!(scratch, service, client);
    let odd = client.status("x", &[("odd", "1")]).current_limit.unwrap();
    assert_eq!((odd.requests_per_unit, odd.unit, &*odd.name), (7, 0, "odd/slow"), "the burst");
    for remaining in [1, 0, 0, 0] {
        let quiet = client.status("x", &[("quiet", "1")]);
        assert_eq!(
            (quiet.code, quiet.limit_remaining, name(&quiet)),
            (OK, remaining, "quiet/86400s")
        );
    }
    let closed = client.status("x", &[("closed", "1")]);
    assert_eq!((closed.code, closed.limit_remaining), (OVER_LIMIT, 0));
    assert_eq!(closed.current_limit.unwrap().requests_per_unit, 0);
    let free = client.status("x", &[("free", "1")]);
    assert_eq!((free.code, free.current_limit, free.limit_remaining), (OK, None, u32::MAX));
    let none = client.status("x", &[("none", "1")]);
    assert_eq!((none.code, none.current_limit, none.limit_remaining), (OK, None, 0));
    assert_eq!(none.duration_until_reset, None);
}

fn headers(response: &crate::grpc_client::RateLimitResponse) -> Vec<(&str, &str)> {
    let headers = response.response_headers_to_add.iter();
    headers.map(|header| (&*header.key, &*header.value)).collect()
}

#[test]
fn headers_describe_the_refusing_or_scarcest_descriptor() {
    serve!(scratch, service, client);
    let both = || request("edge", [descriptor(&[("user", "u")]), descriptor(&[("path", "/a")])]);
    for remaining in ["2", "1", "0"] {
        let response = client.call(both()).unwrap();
        let found = headers(&response);
        assert_eq!(found[0], ("ratelimit-limit", "3"), "the path has less left: {found:?}");
        assert_eq!(found[1], ("ratelimit-remaining", remaining));
        assert_eq!((found[2].0, found.len()), ("ratelimit-reset", 3));
        assert!(found[2].1.parse::<u32>().unwrap() <= 366 * 86_400, "{found:?}");
    }
    let response = client.call(both()).unwrap();
    assert_eq!(response.overall_code, OVER_LIMIT);
    assert_eq!(headers(&response)[0], ("ratelimit-limit", "3"));
    let none = client.call(request("edge", [descriptor(&[("none", "x")])])).unwrap();
    assert!(headers(&none).is_empty());
}

#[test]
fn header_style_is_a_setting() {
    for (style, names) in [
        ("x-unix", &["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"][..]),
        ("x-delta", &["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]),
        ("draft6", &["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]),
        ("draft11", &["ratelimit-policy", "ratelimit"]),
        (
            "provider",
            &[
                "x-ratelimit-limit-requests",
                "x-ratelimit-remaining-requests",
                "x-ratelimit-reset-requests",
            ],
        ),
        ("none", &[]),
    ] {
        serve!(scratch, service, client, "--grpc-headers", style);
        let response = client.call(request("edge", [descriptor(&[("user", "u")])])).unwrap();
        let found: Vec<&str> = headers(&response).into_iter().map(|(name, _)| name).collect();
        assert_eq!(found, names, "{style}");
    }
}

#[test]
fn invalid_requests_name_the_field() {
    serve!(scratch, service, client);
    let one = || descriptor(&[("user", "u")]);
    let long = "x".repeat(60_000);
    for (request, words) in [
        (request("", [one()]), "domain: must not be empty"),
        (request("edge", []), "descriptors: must not be empty"),
        (
            request("edge", (0..101).map(|_| one())),
            "descriptors: has 101 items; the maximum is 100",
        ),
        (request("edge", [one(), descriptor(&[])]), "descriptors[1].entries: must not be empty"),
        (
            request("edge", [descriptor(&[("a", ""), ("", "x")])]),
            "descriptors[0].entries[1].key: must not be empty",
        ),
        (request("edge", [with_limit(one(), 1, 0)]), "descriptors[0].limit.unit: 0 is not a unit"),
        (request("edge", [with_limit(one(), 1, 8)]), "descriptors[0].limit.unit: 8 is not a unit"),
    ] {
        let (code, message) = client.error(request);
        assert_eq!(code, Code::InvalidArgument, "{message}");
        assert!(message.starts_with(words), "{message}");
    }
    let entries: Vec<_> = (0..40).map(|number| (format!("k{number}"), "v")).collect();
    let entries: Vec<_> = entries.iter().map(|(key, value)| (&**key, *value)).collect();
    let (code, message) = client.error(request("edge", [descriptor(&entries)]));
    assert_eq!(code, Code::InvalidArgument, "{message}");
    let (code, message) =
        client.error(request("edge", [descriptor(&[("user", &long), ("x", &long)])]));
    assert_eq!(code, Code::ResourceExhausted, "{message}");
    assert_eq!(client.status("edge", &[("user", "u")]).limit_remaining, 4, "nothing was consumed");
}

#[test]
fn long_values_are_counted_apart() {
    serve!(scratch, service, client);
    let value = |last: char| format!("{}{last}", "x".repeat(30_000));
    for last in ['a', 'b'] {
        for remaining in [4, 3] {
            let status = client.status("edge", &[("user", &value(last))]);
            assert_eq!(status.limit_remaining, remaining, "{last}");
        }
    }
    for value in ["", "a/b", "a%2Fb", "\u{e9}", "a\nb", "user=x"] {
        assert_eq!(client.status("edge", &[("user", value)]).limit_remaining, 4, "{value:?}");
    }
}

#[test]
fn shares_counters_metrics_and_listings_with_http() {
    serve!(scratch, service, client);
    assert_eq!(client.status("edge", &[("user", "u")]).limit_remaining, 4);
    let body = r#"{"facts":{"domain":"edge","descriptor":"user=u","descriptor_index":"0","entry:user":"u"}}"#;
    let decision = service.post("/check", body).json();
    assert_eq!(
        (&decision["rule"], &decision["remaining"]),
        (&"user".into(), &3.into()),
        "{decision}"
    );
    assert_eq!(client.status("edge", &[("user", "u")]).limit_remaining, 2);
    client.call(request("edge", [with_hits(descriptor(&[("user", "u")]), 9)])).unwrap();
    let metrics = service.get("/metrics").body;
    for series in [
        "ratelimiter_requests_checked_total{result=\"allowed\"} 3",
        "ratelimiter_requests_checked_total{result=\"blocked\"} 1",
        "tollgate_rule_checks_total{rule=\"user\",result=\"allowed\"} 3",
    ] {
        assert!(metrics.lines().any(|line| line == series), "{series} is not in {metrics}");
    }
}

#[test]
fn warns_of_concurrency_limits() {
    let scratch = Scratch::new();
    let text = "version: 1\nrules:\n  - { name: slots, limits: [{ concurrency: 3 }] }\n";
    let policy = scratch.write("policy.yaml", text);
    let (service, client) = start(&["--policy", &policy]);
    service.wait_for_log("gRPC has no call to release slots");
    for code in [OK, OK, OK, OVER_LIMIT] {
        assert_eq!(client.status("edge", &[("user", "u")]).code, code);
    }
}

#[test]
fn example_of_the_documentation_works() {
    let envoy = include_str!("../../../../examples/envoy.yaml");
    assert!(envoy.lines().count() <= 40, "{}", envoy.lines().count());
    let page = include_str!("../../../../docs/ENVOY.md");
    let text = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    let scratch = Scratch::new();
    let (_service, client) = start(&["--policy", &scratch.write("policy.yaml", text.unwrap())]);
    // What the proxy of the example sends for a request with `x-client: c1`.
    for line in ["domain: edge", "header_name: x-client, descriptor_key: client"] {
        assert!(envoy.contains(line), "{line}");
    }
    let status = client.status("edge", &[("client", "c1")]);
    let limit = status.current_limit.clone().unwrap();
    assert_eq!((limit.requests_per_unit, limit.unit, &*limit.name), (10, 2, "clients/60s"));
    assert_eq!((status.code, status.limit_remaining), (OK, 9));
}
