//! `LocalLimiter`.

use std::hash::RandomState;
use std::time::Duration;

use tollgate::{Clock, Limit, Listing, LocalLimiter, ManualClock, Quota, Source, Verdict};

fn two_limits(clock: &ManualClock) -> LocalLimiter<ManualClock> {
    let builder = LocalLimiter::builder()
        .limit(Limit::token_bucket(Quota::per_minute(10)).unwrap())
        .limit(Limit::token_bucket(Quota::per_hour(100)).unwrap());
    builder.clock(clock.clone()).build().unwrap()
}

#[test]
fn deciding_limit_has_the_least_remaining() {
    let clock = ManualClock::new();
    let limiter = two_limits(&clock);
    for minute in 0..10 {
        for n in 0..10 {
            let decision = limiter.take("k");
            assert!(decision.is_allowed());
            let deciding = decision.deciding().unwrap();
            // The minute limit has the least remaining until the hour limit is lower.
            let expected =
                if 99 - (minute * 10 + n) + minute * 100 / 60 < 9 - n { "3600s" } else { "60s" };
            assert_eq!(deciding.limit().name(), expected, "minute {minute}, take {n}");
        }
        assert!(!limiter.take("k").is_allowed());
        clock.advance(Duration::from_secs(60));
    }
}

#[test]
fn refusal_uses_the_longest_wait_and_never_wins() {
    let clock = ManualClock::new();
    let limiter = two_limits(&clock);
    let _ = limiter.take_n("k", 10);
    // The minute limit can never allow eleven; the hour limit allows it.
    let decision = limiter.take_n("k", 11);
    assert_eq!(decision.verdict(), Verdict::Never);
    assert_eq!(decision.deciding().unwrap().limit().name(), "60s");
    let decision = limiter.take_n("k", 5);
    assert_eq!(decision.retry_after(), Some(Duration::from_secs(30)));
}

#[test]
fn slowest_limit_decides_if_remaining_is_equal() {
    let limiter = LocalLimiter::builder()
        .limit(Limit::token_bucket(Quota::per_minute(10)).unwrap())
        .limit(Limit::token_bucket(Quota::per_hour(10)).unwrap())
        .limit(Limit::token_bucket(Quota::per_second(10)).unwrap())
        .clock(ManualClock::new())
        .build()
        .unwrap();
    assert_eq!(limiter.take("k").deciding().unwrap().limit().name(), "3600s");
}

#[test]
fn unnamed_limits_with_equal_windows_are_numbered() {
    let limiter = LocalLimiter::builder()
        .limit(Limit::token_bucket(Quota::per_minute(10)).unwrap())
        .limit(Limit::token_bucket(Quota::per_minute(20)).unwrap())
        .limit(Limit::sliding_window(Quota::per_minute(5)).unwrap())
        .limit(Limit::token_bucket(Quota::new(1, Duration::from_millis(1500))).unwrap())
        .limit(Limit::token_bucket(Quota::new(1, Duration::from_micros(250))).unwrap())
        .build()
        .unwrap();
    let names: Vec<&str> = limiter.limits().iter().map(Limit::name).collect();
    assert_eq!(names, ["60s", "60s#2", "60s#3", "1500ms", "250us"]);
    let decision = limiter.take("k");
    let remaining: Vec<u64> = decision.statuses().iter().map(tollgate::Status::remaining).collect();
    assert_eq!(remaining, [9, 19, 4, 0, 0]);
}

#[test]
fn explicit_names_win_in_any_order() {
    let limit = || Limit::token_bucket(Quota::per_minute(10)).unwrap();
    let named = || limit().named("60s").unwrap();
    for (limits, names) in
        [([limit(), named()], ["60s#2", "60s"]), ([named(), limit()], ["60s", "60s#2"])]
    {
        let builder =
            limits.into_iter().fold(LocalLimiter::builder(), tollgate::LocalLimiterBuilder::limit);
        let limiter = builder.build().unwrap();
        assert_eq!(limiter.limits().iter().map(Limit::name).collect::<Vec<_>>(), names);
    }
}

/// Keys may be secret and numerous.
#[test]
fn debug_shows_no_key() {
    let limiter = two_limits(&ManualClock::new());
    let _ = limiter.take("s3cr3t");
    let debug = format!("{limiter:?}");
    assert!(debug.contains("keys: 2") && !debug.contains("s3cr3t"), "{debug}");
    assert!(debug.len() < 2000, "{} characters", debug.len());
}

#[test]
fn operations_apply_to_every_limit() {
    let clock = ManualClock::new();
    let limiter = two_limits(&clock);
    let remaining = |limiter: &LocalLimiter<ManualClock>| -> Vec<u64> {
        limiter.stats("k").statuses().iter().map(tollgate::Status::remaining).collect()
    };
    let _ = limiter.debit("k", 4, Duration::ZERO);
    assert_eq!(remaining(&limiter), [6, 96]);
    let _ = limiter.refund("k", 1);
    assert_eq!(remaining(&limiter), [7, 97]);
    limiter.pause("k", Duration::from_secs(3));
    assert_eq!(remaining(&limiter), [0, 0]);
    assert_eq!(limiter.take("k").retry_after(), Some(Duration::from_secs(3)));
    limiter.reset("k");
    assert_eq!(remaining(&limiter), [10, 100]);
    assert_eq!(limiter.list(&Listing::all()).unwrap().keys, []);
}

#[test]
fn decision_has_source_and_time() {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(5));
    let limiter = two_limits(&clock);
    let decision = limiter.take("k");
    assert_eq!(decision.at().as_micros(), 5_000_000);
    assert_eq!((decision.source(), decision.is_degraded()), (Source::Store, false));
    // The key need not outlive the decision.
    let decision = limiter.take(&String::from("k"));
    assert!(decision.is_allowed());
}

#[test]
fn try_acquire_error_has_key_and_retry_after() {
    let clock = ManualClock::new();
    let builder =
        LocalLimiter::builder().limit(Limit::sliding_window(Quota::per_second(4)).unwrap());
    let limiter = builder.clock(clock).hasher(RandomState::new()).build().unwrap();
    for remaining in [3, 2, 1, 0] {
        assert_eq!(limiter.try_acquire("igdb:api").unwrap().remaining(), Some(remaining));
    }
    let refused = limiter.try_acquire("igdb:api").unwrap_err();
    assert_eq!(refused.key, "igdb:api");
    assert_eq!(refused.retry_after, Some(Duration::from_secs(1)));
}

/// Hashes a numeric subject to its number, so that keys have consecutive hashes.
#[derive(Debug, Clone, Default)]
struct ByNumber(u64);

impl std::hash::BuildHasher for ByNumber {
    type Hasher = Self;
    fn build_hasher(&self) -> Self {
        Self::default()
    }
}

impl std::hash::Hasher for ByNumber {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    }
}

#[test]
fn listing_continues_at_the_next_hash() {
    let builder = LocalLimiter::builder().limit(Limit::token_bucket(Quota::per_day(1)).unwrap());
    let limiter = builder.hasher(ByNumber::default()).build().unwrap();
    for n in 0..50 {
        assert!(limiter.take(&n.to_string()).is_allowed());
    }
    let (mut listing, mut listed) = (Listing::all().with_page_size(1), 0);
    loop {
        let page = limiter.list(&listing).unwrap();
        listed += page.keys.len();
        match page.next {
            Some(cursor) => listing = listing.after(cursor),
            None => break,
        }
    }
    assert_eq!(listed, 50);
}

#[test]
fn rejects_invalid_cursors() {
    let limiter = two_limits(&ManualClock::new());
    let error = limiter.list(&Listing::all().after(tollgate::Cursor::new("page 2"))).unwrap_err();
    assert_eq!(error.kind(), tollgate::StoreErrorKind::Cursor);
    assert_eq!(error.to_string(), "invalid cursor \"page 2\"; use the cursor of the previous page");
}

/// Compares `check` with `take`, and a take of one limit with a plan of the same limit, while the clock also steps back.
#[test]
fn check_returns_the_verdict_of_a_take() {
    let quota = Quota::per_second(7).burst(5);
    let long = "a-subject-longer-than-what-fits-into-a-slot";
    for limit in [
        Limit::token_bucket(quota),
        Limit::sliding_window(Quota::per_second(5)),
        Limit::sliding_counter(Quota::per_second(5)),
        Limit::fixed_window(Quota::per_second(5)),
    ] {
        let clock = ManualClock::at(tollgate::Timestamp::from_micros(1_000_000_000));
        let build = || {
            let builder = LocalLimiter::builder().limit(limit.clone().unwrap());
            builder.clock(clock.clone()).build().unwrap()
        };
        let (checked, taken) = (build(), build());
        for step in 0..2_000_u64 {
            let key = if step % 3 == 0 { long } else { "user:1" };
            let cost = step * 7 % 8;
            let expected = taken.take_n(key, cost);
            assert_eq!(checked.check_n(key, cost), expected.verdict(), "{step}");
            assert_eq!(checked.stats(key), taken.stats(key), "{step}");
            let now = clock.now();
            let length = Duration::from_micros(step * 7919 % 300_000);
            clock.set(if step % 11 == 0 { now - length } else { now + length });
        }
    }
    let two = two_limits(&ManualClock::new());
    assert_eq!(two.check("user:1"), Verdict::Allow);
    assert_eq!(two.check_n("user:1", 1_000_000), Verdict::Never);
}
