//! The limiter that embeds.

use std::hash::RandomState;
use std::time::Duration;

use tollgate::{Limit, Listing, LocalLimiter, ManualClock, Quota, Source, Verdict};

fn two_limits(clock: &ManualClock) -> LocalLimiter<ManualClock> {
    let builder = LocalLimiter::builder()
        .limit(Limit::token_bucket(Quota::per_minute(10)).unwrap())
        .limit(Limit::token_bucket(Quota::per_hour(100)).unwrap());
    builder.clock(clock.clone()).build().unwrap()
}

#[test]
fn the_deciding_limit_is_the_one_most_in_the_way() {
    let clock = ManualClock::new();
    let limiter = two_limits(&clock);
    for minute in 0..10 {
        for n in 0..10 {
            let decision = limiter.take("k");
            assert!(decision.is_allowed());
            let deciding = decision.deciding().unwrap();
            // Allowed: the least remaining. The minute's, until the hour's is lower.
            let expected =
                if 99 - (minute * 10 + n) + minute * 100 / 60 < 9 - n { "3600s" } else { "60s" };
            assert_eq!(deciding.limit().name(), expected, "minute {minute}, take {n}");
        }
        assert!(!limiter.take("k").is_allowed());
        clock.advance(Duration::from_secs(60));
    }
}

#[test]
fn a_refusal_names_the_longest_wait_and_never_beats_all() {
    let clock = ManualClock::new();
    let limiter = two_limits(&clock);
    let _ = limiter.take_n("k", 10);
    // Both refuse eleven: the minute for ever, the hour not at all.
    let decision = limiter.take_n("k", 11);
    assert_eq!(decision.verdict(), Verdict::Never);
    assert_eq!(decision.deciding().unwrap().limit().name(), "60s");
    let decision = limiter.take_n("k", 5);
    assert_eq!(decision.retry_after(), Some(Duration::from_secs(30)));
}

#[test]
fn of_limits_with_the_same_left_the_slower_one_decides() {
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
fn unnamed_limits_of_one_window_are_told_apart() {
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
fn a_given_name_is_kept_whatever_the_order() {
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

/// Keys may be secrets, and there may be a million.
#[test]
fn debug_shows_no_key() {
    let limiter = two_limits(&ManualClock::new());
    let _ = limiter.take("s3cr3t");
    let shown = format!("{limiter:?}");
    assert!(shown.contains("keys: 2") && !shown.contains("s3cr3t"), "{shown}");
    assert!(shown.len() < 2000, "{} characters", shown.len());
}

#[test]
fn operations_reach_every_limit() {
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
fn a_decision_tells_where_and_when_it_was_made() {
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
fn try_acquire_carries_the_key_and_the_wait() {
    let clock = ManualClock::new();
    let builder =
        LocalLimiter::builder().limit(Limit::sliding_window(Quota::per_second(4)).unwrap());
    let limiter = builder.clock(clock).hasher(RandomState::new()).build().unwrap();
    for left in [3, 2, 1, 0] {
        assert_eq!(limiter.try_acquire("igdb:api").unwrap().remaining(), Some(left));
    }
    let refused = limiter.try_acquire("igdb:api").unwrap_err();
    assert_eq!(refused.key, "igdb:api");
    assert_eq!(refused.retry_after, Some(Duration::from_secs(1)));
}

/// Hashes a subject that is a number to that number: neighbours on every page.
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
fn a_listing_goes_on_at_the_very_next_hash() {
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
fn a_foreign_cursor_is_an_error_and_not_a_listing() {
    let limiter = two_limits(&ManualClock::new());
    let error = limiter.list(&Listing::all().after(tollgate::Cursor::new("page 2"))).unwrap_err();
    assert_eq!(error.kind(), tollgate::StoreErrorKind::Cursor);
    assert_eq!(error.to_string(), "invalid cursor \"page 2\"; use the cursor of the previous page");
}
