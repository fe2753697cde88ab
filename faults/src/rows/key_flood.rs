//! A flood of distinct keys: exhausted keys stay exhausted, and memory is bounded.

use std::time::{Duration, Instant};

use tollgate_testkit::server::{Raw, Server};

use super::common::assert_never_degraded;
use crate::flood::{Flood, KEY_BYTES, PREFIX, Replies};
use crate::front_end::{FrontEnd, Query};
use crate::node::Node;
use crate::policy::{Loss, per_client_everywhere};
use crate::redis;
use crate::side_load::{self, Tallies};
use crate::stage::Stage;

/// The limit of the clients that are exhausted before the flood.
const LIMIT: u64 = 5;
const POLICY_LIMIT: &str = "5/h";
/// The number of exhausted clients.
const EXHAUSTED: u64 = 10;

/// Connections that send the flood.
const CONNECTIONS: u64 = 4;

/// The period of a bucket of three requests in memory, in seconds: no key is full again while the row runs.
const LONG_PERIOD: u32 = 36_000;
/// The period on Redis, in seconds: keys expire while the row runs.
const SHORT_PERIOD: u32 = 30;
/// The longest time that Redis keeps a key, in seconds: until the bucket is full after one of three requests, and one
/// second.
const MAX_TTL: u32 = SHORT_PERIOD / 3 + 1;

/// The documented maximum memory of a key besides its text, in bytes.
const BYTES_PER_KEY: u64 = 64;
/// The memory of a node besides its keys that may be used only during the flood, in bytes.
const PROCESS_GROWTH: u64 = 24 << 20;
/// The maximum memory of Redis per key, in bytes. docs/OPERATING.md shows 165 for short keys.
const REDIS_BYTES_PER_KEY: u64 = 256;

pub(super) fn exhausted_keys_stay_exhausted_in_a_flood_of_keys(stage: &Stage) -> String {
    let in_memory = flood_memory(stage);
    let at_cap = flood_denying(stage);
    let on_redis = flood_redis(stage);
    format!("memory store: {in_memory}; --at-cap deny: {at_cap}; Redis: {on_redis}")
}

/// Floods a node with the memory store and its default decision for keys above the maximum.
fn flood_memory(stage: &Stage) -> String {
    let (max_keys, flooded) = stage.scale().pick((50_000, 100_000), (1_000_000, 10_000_000));
    let policy = per_client_everywhere(POLICY_LIMIT, Loss::Local);
    let setup = stage.node().all_front_ends().policy(&policy);
    let node = setup.with("max-keys", max_keys.to_string()).start();
    exhaust_clients(&node);
    let flood = flood(&node, LONG_PERIOD);
    let (before, used) = (node.rss(), keys(&node));
    let began = Instant::now();
    let (replies, others) = flood_beside_exhausted_clients(&node, || {
        // The store is full after the first part; memory grows no more during the second.
        let full = 2 * max_keys;
        let mut replies = flood.send(0..full);
        let at_cap = node.rss();
        replies += flood.send(full..flooded.max(full));
        let growth = node.rss().saturating_sub(at_cap);
        assert!(growth < PROCESS_GROWTH, "{growth} bytes more when the store was full");
        replies
    });
    let took = began.elapsed();
    let expected = Replies { allowed: flooded.max(2 * max_keys), ..Replies::default() };
    assert_eq!(replies, expected, "each key is new");
    assert_eq!(keys(&node), max_keys, "the store is full");
    let untracked = node.metric("tollgate_memory_untracked_total");
    let expected = number(replies.allowed - (max_keys - used));
    assert!((untracked - expected).abs() < 0.5, "{untracked} untracked, expected {expected}");
    let warning = node.warning();
    assert!(warning.is_some_and(|text| text.contains("max-keys")), "{}", node.status());
    let growth = node.peak().saturating_sub(before);
    let bound = max_keys * (BYTES_PER_KEY + KEY_BYTES) + PROCESS_GROWTH;
    assert!(growth < bound, "{growth} bytes for {max_keys} keys");
    assert_still_exhausted(&node, true);
    format!(
        "{} keys in {:.0} s, {max_keys} kept in {} MiB ({} bytes each), {untracked} untracked; {}",
        replies.allowed,
        took.as_secs_f64(),
        growth >> 20,
        growth / max_keys,
        describe(&others)
    )
}

/// Floods a node with the memory store that refuses keys above the maximum.
fn flood_denying(stage: &Stage) -> String {
    let max_keys = stage.scale().pick(10_000, 500_000);
    let policy = per_client_everywhere(POLICY_LIMIT, Loss::Local);
    let setup = stage.node().all_front_ends().policy(&policy).with("at-cap", "deny");
    let node = setup.with("max-keys", max_keys.to_string()).start();
    exhaust_clients(&node);
    let (used, flood) = (keys(&node), flood(&node, LONG_PERIOD));
    let (replies, others) = flood_beside_exhausted_clients(&node, || flood.send(0..2 * max_keys));
    let allowed = max_keys - used;
    let expected = Replies { allowed, refused: 2 * max_keys - allowed, errors: 0 };
    assert_eq!(replies, expected, "new keys are refused when the store is full");
    assert_eq!(keys(&node), max_keys, "the store is full");
    assert_still_exhausted(&node, false);
    format!("{} of {} keys refused; {}", replies.refused, replies.all(), describe(&others))
}

/// Floods a node with Redis.
fn flood_redis(stage: &Stage) -> String {
    let flooded = stage.scale().pick(50_000, 10_000_000);
    let server = redis::start();
    let policy = per_client_everywhere(POLICY_LIMIT, Loss::Local);
    let setup = stage.node().all_front_ends().policy(&policy).redis(&redis::url(&server));
    let node = setup.patient().start();
    exhaust_clients(&node);
    let (flood, began) = (flood(&node, SHORT_PERIOD), Instant::now());
    let (before, node_before) = (redis::info(&server, "used_memory"), node.rss());
    let (mut most_keys, mut most_memory, mut longest) = (0, 0, Duration::ZERO);
    let (replies, others) = flood_beside_exhausted_clients(&node, || {
        let (mut replies, part) = (Replies::default(), flooded / 10);
        for nth in 0..10 {
            let numbers = nth * part..(nth + 1) * part;
            replies += flood.send(numbers);
            let stored = StoredKeys::read(&server);
            most_keys = most_keys.max(stored.count);
            longest = longest.max(stored.longest_ttl);
            most_memory = most_memory.max(redis::info(&server, "used_memory"));
        }
        replies
    });
    let took = began.elapsed();
    assert_eq!(replies, Replies { allowed: flooded, ..Replies::default() }, "each key is new");
    assert_never_degraded(&node);
    assert!(most_keys > 0, "no key of the flood was seen in Redis");
    assert!(longest <= Duration::from_secs(MAX_TTL.into()), "a key lives for {longest:?}");
    let memory = most_memory.saturating_sub(before);
    let bound = most_keys * REDIS_BYTES_PER_KEY + PROCESS_GROWTH;
    assert!(memory < bound, "{memory} bytes for {most_keys} keys");
    let growth = node.rss().saturating_sub(node_before);
    assert!(growth < PROCESS_GROWTH, "{growth} bytes more in a node that keeps no keys");
    assert_still_exhausted(&node, true);
    format!(
        "{flooded} keys in {:.0} s, at most {most_keys} and {} MiB at a time, longest TTL {:.1} s; {}",
        took.as_secs_f64(),
        memory >> 20,
        longest.as_secs_f64(),
        describe(&others)
    )
}

fn flood(node: &Node, period: u32) -> Flood {
    let address = node.address_of(FrontEnd::Resp);
    Flood { address, connections: CONNECTIONS, period, key_bytes: KEY_BYTES }
}

fn exhausted(number: u64) -> Query {
    Query::of(format!("exhausted-{}", number % EXHAUSTED))
}

/// A client that has used a part of its limit.
fn partial() -> Query {
    Query::of("partial")
}

/// Exhausts the clients. HTTP, RESP and auth requests share counters; gRPC requests have their own rule.
fn exhaust_clients(node: &Node) {
    for front_end in [FrontEnd::Http, FrontEnd::Grpc] {
        let mut connection = node.connect(front_end);
        let mut check = |query: &Query| {
            let answer = connection.check(query).expect("the node responds");
            answer.is_allowed()
        };
        for number in 0..EXHAUSTED {
            let allowed = (0..=LIMIT).filter(|_| check(&exhausted(number))).count();
            assert_eq!(allowed as u64, LIMIT, "{}", front_end.name());
        }
        assert!(check(&partial()));
    }
}

/// Floods a node. Meanwhile, every front end sends requests of the exhausted clients.
fn flood_beside_exhausted_clients(
    node: &Node,
    flood: impl FnOnce() -> Replies,
) -> (Replies, Tallies) {
    let (replies, others) = side_load::during(node, exhausted, flood);
    for (front_end, tally) in &others {
        tally.assert_none_failed();
        let name = front_end.name();
        assert!(tally.count() > 0, "no exhausted client sent a request over {name}");
        assert_eq!(tally.admitted(), 0, "exhausted clients were admitted over {name}");
    }
    (replies, others)
}

/// Asserts that exhausted clients are still refused, other clients have what they had, and new clients are decided.
fn assert_still_exhausted(node: &Node, admits_new: bool) {
    for front_end in FrontEnd::ALL {
        let name = front_end.name();
        for number in 0..EXHAUSTED {
            let answer = node.check_over(front_end, &exhausted(number));
            assert!(!answer.is_allowed(), "an exhausted client was admitted over {name}");
        }
        let answer = node.check_over(front_end, &Query::of("new"));
        assert_eq!(answer.is_allowed(), admits_new, "a new client over {name}: {answer:?}");
    }
    for front_end in [FrontEnd::Http, FrontEnd::Grpc] {
        let mut connection = node.connect(front_end);
        let check = |_: &u64| connection.check(&partial()).is_ok_and(|answer| answer.is_allowed());
        let left = (0..=LIMIT).filter(check).count() as u64;
        assert_eq!(left, LIMIT - 1, "one request was sent before the flood");
    }
}

fn keys(node: &Node) -> u64 {
    let keys = node.metric("tollgate_memory_keys");
    format!("{keys:.0}").parse().expect("a count")
}

fn number(count: u64) -> f64 {
    f64::from(u32::try_from(count).expect("the count fits u32"))
}

fn describe(others: &Tallies) -> String {
    format!("no exhausted client admitted ({})", side_load::counts(others))
}

/// The keys of the flood in Redis.
struct StoredKeys {
    count: u64,
    longest_ttl: Duration,
}

impl StoredKeys {
    /// Scans Redis. Asserts that each key has an expiry.
    fn read(server: &Server) -> Self {
        const SCAN: &str =
            "local page = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 5000)
            local longest, unlimited = 0, 0
            for _, key in ipairs(page[2]) do
                local ttl = redis.call('PTTL', key)
                if ttl == -1 then unlimited = unlimited + 1 end
                if ttl > longest then longest = ttl end
            end
            return { tonumber(page[1]), #page[2], longest, unlimited }";
        let (mut raw, mut cursor): (Raw, i64) = (server.raw(), 0);
        let (mut count, mut longest) = (0, 0);
        let pattern = format!("*{PREFIX}*");
        loop {
            let reply = raw.call(&["EVAL", SCAN, "0", &cursor.to_string(), &pattern]);
            let [next, keys, ttl, unlimited] = [0, 1, 2, 3].map(|nth| reply.array()[nth].int());
            assert_eq!(unlimited, 0, "keys without an expiry");
            count += u64::try_from(keys).expect("a count");
            longest = longest.max(u64::try_from(ttl).expect("a time"));
            cursor = next;
            if cursor == 0 {
                return Self { count, longest_ttl: Duration::from_millis(longest) };
            }
        }
    }
}
