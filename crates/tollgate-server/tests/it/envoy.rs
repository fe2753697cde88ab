//! A real Envoy with its stock rate limit filter, as `docs/ENVOY.md` describes it.
//!
//! The filter waits 20 ms for a decision, which a busy machine may exceed: then a request passes without the headers of
//! Tollgate. The tests allow for such requests.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant, SystemTime};

use tollgate_testkit::server::{Flavor, Server, free_port};

use crate::envoy_proxy::{App, Envoy, Proxied, ProxyClient};
use crate::grpc_client::grpc_address;
use crate::service::{Scratch, Service, eventually, tollgate};

const PAGE: &str = include_str!("../../../../docs/ENVOY.md");
const LIMIT: usize = 10;
const TOKEN: &str = "a-token-for-checks-0123456789abcdef";

/// Tollgate with the policy of the page, a connection to Envoy, and the app.
struct Setup {
    _scratch: Scratch,
    service: Service,
    app: App,
    envoy: Envoy,
}

impl Setup {
    /// Starts all programs; `change` replaces a text in the configuration of Envoy.
    fn start(args: &[&str], change: Option<(&str, &str)>) -> Self {
        let (scratch, app) = (Scratch::new(), App::start());
        let service = service(&scratch, "127.0.0.1:0", args);
        let envoy = Envoy::start_with(&scratch, grpc_address(&service), &app, change);
        Self { _scratch: scratch, service, app, envoy }
    }
}

/// Starts Tollgate with the policy of the page.
fn service(scratch: &Scratch, grpc: &str, args: &[&str]) -> Service {
    let policy = scratch.write("policy.yaml", block("yaml"));
    Service::start(&[&["--grpc", grpc, "--policy", &policy], args].concat())
}

/// Returns the first block of the page in this language.
fn block(language: &str) -> &'static str {
    let rest = PAGE.split_once(&format!("```{language}\n")).expect("a block").1;
    rest.split("```").next().expect("a block ends")
}

/// Sends requests of a client until Tollgate refuses one, and returns all responses.
fn until_refused(connection: &mut ProxyClient, client: &str) -> Vec<Proxied> {
    let mut responses = Vec::new();
    eventually("a refusal", || {
        let response = connection.get(client);
        let is_refused = response.is_refused();
        responses.push(response);
        is_refused
    });
    responses
}

/// Runs `attempt` with a number until it does not span two minutes of the clock, in which the limit would start again.
fn within_a_minute<T>(mut attempt: impl FnMut(usize) -> T) -> T {
    let minute = || SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_secs() / 60;
    let attempts = (0..5).find_map(|number| {
        let (before, result) = (minute(), attempt(number));
        (minute() == before).then_some(result)
    });
    attempts.expect("one of five attempts takes less than a minute")
}

/// Asserts that the limit was held. A request without a decision in time passed; it may have counted.
fn assert_limited(responses: &[Proxied]) {
    let decided: Vec<&Proxied> = responses.iter().filter(|one| one.is_decided()).collect();
    let (refused, admitted) = decided.split_last().expect("the last one is refused");
    let undecided = responses.len() - decided.len();
    println!("{} admitted, {undecided} passed without a decision", admitted.len());
    assert!((LIMIT - undecided.min(LIMIT)..=LIMIT).contains(&admitted.len()), "{responses:?}");
    assert!(responses.iter().rev().skip(1).all(Proxied::is_passed), "{responses:?}");
    let remaining: Vec<u64> =
        decided.iter().filter_map(|one| one.number("ratelimit-remaining")).collect();
    assert!(remaining.is_sorted_by(|one, next| one > next || *next == 0), "{remaining:?}");
    if undecided == 0 {
        assert_eq!(remaining, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0]);
    }
    for response in &decided {
        assert_eq!(response.number("ratelimit-limit"), Some(10), "{response:?}");
        let reset = response.number("ratelimit-reset");
        assert!(reset.is_some_and(|reset| (1..=60).contains(&reset)), "{response:?}");
    }
    assert!(refused.is_refused() && refused.0.body.is_empty(), "{refused:?}");
}

#[test]
fn example_limits_each_header_value() {
    let setup = Setup::start(&[], None);
    let mut connection = setup.envoy.client();
    let (responses, other) = within_a_minute(|attempt| {
        let responses = until_refused(&mut connection, &format!("a{attempt}"));
        (responses, connection.get(&format!("b{attempt}")))
    });
    assert_limited(&responses);
    assert!(other.is_passed(), "{other:?}");
    assert!(other.number("ratelimit-remaining").is_none_or(|left| left == 9), "{other:?}");
    let (before, without) = (setup.app.requests(), connection.get_without_client());
    assert!(without.is_passed() && !without.is_decided(), "no descriptor, no call: {without:?}");
    assert_eq!(setup.app.requests(), before + 1);
    // All requests have used one connection to Envoy, which has used one to the app and one to Tollgate.
    assert_eq!(setup.app.connections(), 1);
    let metrics = setup.service.get("/metrics").body;
    assert!(metrics.contains("\ntollgate_connections{frontend=\"grpc\"} 1\n"), "{metrics}");
}

#[test]
fn refused_requests_do_not_reach_the_app() {
    let setup = Setup::start(&[], None);
    let mut connection = setup.envoy.client();
    let responses = until_refused(&mut connection, "a");
    assert_eq!(setup.app.requests(), responses.len() - 1);
}

#[test]
fn requests_pass_while_tollgate_is_down() {
    let (scratch, app) = (Scratch::new(), App::start());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let envoy = Envoy::start(&scratch, address, &app);
    let mut connection = envoy.client();
    let mut assert_open = || {
        let responses: Vec<Proxied> = (0..3 * LIMIT).map(|_| connection.get("a")).collect();
        assert!(responses.iter().all(|one| one.is_passed() && !one.is_decided()), "{responses:?}");
    };
    assert_open();
    let first = service(&scratch, &address.to_string(), &[]);
    eventually("Envoy connects", || envoy.client().get("b").is_decided());
    first.kill();
    assert_open();
    let _second = service(&scratch, &address.to_string(), &[]);
    eventually("Envoy connects again", || envoy.client().get("b").is_decided());
    assert_limited(&within_a_minute(|attempt| {
        until_refused(&mut envoy.client(), &format!("c{attempt}"))
    }));
}

#[test]
fn failure_mode_deny_refuses_while_tollgate_is_down() {
    let change = ("failure_mode_deny: false", "failure_mode_deny: true");
    let Setup { _scratch, service, app, envoy } = Setup::start(&[], Some(change));
    let mut connection = envoy.client();
    eventually("a decision", || connection.get("a").is_decided());
    service.kill();
    let before = app.requests();
    for _ in 0..LIMIT {
        let response = connection.get("b");
        assert_eq!((response.0.status, response.is_decided()), (500, false), "{response:?}");
    }
    assert_eq!(app.requests(), before);
}

#[test]
fn envoy_sends_the_token() {
    let service = "grpc_service: { envoy_grpc: { cluster_name: tollgate } }";
    let metadata = "initial_metadata: [{ key: authorization, value: Bearer TOKEN }]";
    assert!(PAGE.contains(metadata));
    let metadata = metadata.replace("TOKEN", TOKEN);
    let with_token =
        format!("grpc_service: {{ envoy_grpc: {{ cluster_name: tollgate }}, {metadata} }}");
    let (scratch, app) = (Scratch::new(), App::start());
    let policy = scratch.write("policy.yaml", block("yaml"));
    let args = ["--grpc", "127.0.0.1:0", "--policy", &policy];
    let node = Service::start_with(&args, &[("TOLLGATE_CHECK_TOKEN", TOKEN)]);
    let address = grpc_address(&node);
    let envoy = Envoy::start_with(&scratch, address, &app, Some((service, &with_token)));
    let mut connection = envoy.client();
    eventually("a decision", || connection.get("a").is_decided());
    drop(envoy);
    let envoy = Envoy::start(&scratch, address, &app);
    let response = envoy.client().get("a");
    assert!(response.is_passed() && !response.is_decided(), "{response:?}");
    let failures = "\ntollgate_auth_failures_total{token=\"check\"} 1\n";
    eventually("UNAUTHENTICATED", || node.get("/metrics").body.contains(failures));
}

/// Starts Tollgate with the command of the page, on this Redis.
fn documented_service(scratch: &Scratch, redis: &Server) -> Service {
    let command = block("sh").lines().find(|line| line.starts_with("tollgate serve"));
    let (policy, url) = (scratch.write("policy.yaml", block("yaml")), redis.url());
    let words = command.expect("the page starts Tollgate").split(' ').skip(1);
    let args: Vec<&str> = words
        .map(|word| match word {
            "127.0.0.1:8081" => "127.0.0.1:0",
            "policy.yaml" => &policy,
            "redis://127.0.0.1" => &url,
            word => word,
        })
        .collect();
    assert!(args.contains(&"--redis-timeout-ms"), "{args:?}");
    Service::start_as(tollgate(&args).args(["--http", "127.0.0.1:0"]))
}

/// Sends a request, and adds the time that it took.
fn timed(connection: &mut ProxyClient, client: &str, times: &mut Vec<Duration>) -> Proxied {
    let start = Instant::now();
    let response = connection.get(client);
    times.push(start.elapsed());
    response
}

/// Asserts that Envoy did not wait for Redis. A busy machine may take long; the figures are printed.
fn assert_not_waited(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    println!("{what}: {} requests, median {median:?}, longest {longest:?}", times.len());
    assert!(longest < Duration::from_secs(20), "{longest:?}");
}

#[test]
fn limit_holds_in_time_while_redis_hangs() {
    let (scratch, app, redis) = (Scratch::new(), App::start(), Server::start(Flavor::Redis));
    let node = documented_service(&scratch, &redis);
    let envoy = Envoy::start(&scratch, grpc_address(&node), &app);
    let mut connection = envoy.client();
    eventually("a decision", || connection.get("a").is_decided());
    redis.hang();
    let mut times = Vec::new();
    let responses = within_a_minute(|attempt| {
        let (client, mut responses) = (format!("b{attempt}"), Vec::new());
        eventually("a refusal by this node", || {
            let response = timed(&mut connection, &client, &mut times);
            let is_refused = response.is_refused();
            responses.push(response);
            is_refused
        });
        responses
    });
    // One node has the whole limit. Decisions that come too late are admissions of the node, too.
    assert_limited(&responses);
    assert_not_waited("--redis-timeout-ms 10", times);
    redis.resume();
    eventually("Redis decides again", || node.get("/api/status").json()["breaker"] == "closed");
    eventually("a decision", || connection.get("c").is_decided());
}

#[test]
fn envoy_gives_up_before_a_longer_redis_timeout() {
    let redis = Server::start(Flavor::Redis);
    let url = redis.url();
    let args = ["--redis", &url, "--redis-timeout-ms", "60000"];
    let setup = Setup::start(&args, None);
    let mut connection = setup.envoy.client();
    eventually("a decision", || connection.get("a").is_decided());
    redis.hang();
    let mut times = Vec::new();
    for _ in 0..2 * LIMIT {
        let response = timed(&mut connection, "b", &mut times);
        assert!(response.is_passed() && !response.is_decided(), "{response:?}");
    }
    assert_not_waited("--redis-timeout-ms 60000", times);
    assert_eq!(setup.service.get("/api/status").json()["breaker"], "closed");
    redis.resume();
    eventually("a decision", || connection.get("c").is_decided());
}

#[test]
fn node_decides_in_time_after_envoy_gave_up() {
    // The time-out of Redis is 100 ms: calls end at the deadline of Envoy, 20 ms, before they fail. The breaker opens when
    // the node cannot connect again.
    let redis = Server::start(Flavor::Redis);
    let setup = Setup::start(&["--redis", &redis.url()], None);
    let mut connection = setup.envoy.client();
    eventually("a decision", || connection.get("a").is_decided());
    redis.hang();
    let start = Instant::now();
    eventually("the breaker opens", || {
        connection.get("b");
        setup.service.get("/api/status").json()["breaker"] == "open"
    });
    println!("the breaker opened after {:?}", start.elapsed());
    assert_limited(&within_a_minute(|attempt| {
        until_refused(&mut connection, &format!("c{attempt}"))
    }));
}
