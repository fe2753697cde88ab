//! Exact text of the rate limit headers. Property tests with an independent parser are in `tollgate-tower`.

use std::num::NonZeroU32;
use std::time::Duration;

use allocation_counter::measure;
use tollgate::algorithm::{CalendarUnit, Reply};
use tollgate::{
    Decision, FieldValue, HeaderStyle, Limit, LocalLimiter, ManualClock, Mode, Quota, Status,
    Timestamp, Unit, Verdict,
};

fn headers(style: HeaderStyle, decision: &Decision<'_>) -> Vec<String> {
    let mut fields = Vec::new();
    style.write(decision, |name, value| fields.push(format!("{name}: {value}")));
    fields
}

fn bucket(rule: &str) -> Limit {
    Limit::token_bucket(Quota::per_minute(10)).unwrap().in_rule(rule).unwrap()
}

fn full(limit: &Limit) -> Status<'_> {
    let reply = Reply::new(Verdict::Allow, limit.capacity(), Duration::ZERO);
    Status::new(limit, Mode::Enforce, reply)
}

#[test]
fn every_style_has_limit_remaining_and_reset() {
    let clock = ManualClock::new();
    clock.advance(Duration::from_micros(1_702_199_964_500_000));
    let limit = Limit::token_bucket(Quota::per_minute(10)).unwrap();
    let limiter = LocalLimiter::builder().limit(limit).clock(clock).build().unwrap();
    // Five are taken: full again in 30 s, at a time with half a second.
    let decision = limiter.take_n("k", 5);
    let expected: [&[&str]; 5] = [
        &["x-ratelimit-limit: 10", "x-ratelimit-remaining: 5", "x-ratelimit-reset: 1702199995"],
        &["x-ratelimit-limit: 10", "x-ratelimit-remaining: 5", "x-ratelimit-reset: 30"],
        &["ratelimit-limit: 10", "ratelimit-remaining: 5", "ratelimit-reset: 30"],
        &["ratelimit-policy: \"60s\";q=10;w=60", "ratelimit: \"60s\";r=5;t=30"],
        &[
            "x-ratelimit-limit-requests: 10",
            "x-ratelimit-remaining-requests: 5",
            "x-ratelimit-reset-requests: 30s",
        ],
    ];
    for (style, expected) in HeaderStyle::ALL.into_iter().zip(expected) {
        assert_eq!(headers(style, &decision), expected);
    }
}

#[test]
fn style_names_and_header_names_match_the_output() {
    let limiter = LocalLimiter::new(Limit::block());
    for style in HeaderStyle::ALL {
        assert_eq!(HeaderStyle::named(style.as_str()), Some(style));
        let mut written = Vec::new();
        style.write(&limiter.take("k"), |name, _| written.push(name));
        // No limit counts tokens.
        let fields = style.fields().iter().filter(|name| !name.ends_with("-tokens"));
        assert_eq!(written, fields.copied().collect::<Vec<_>>());
    }
}

#[test]
fn provider_headers_describe_the_limit_with_the_least_remaining() {
    let limits = ["few", "many", "shadow"].map(bucket);
    let of = |limit, mode, remaining, reset| {
        Status::new(limit, mode, Reply::new(Verdict::Allow, remaining, Duration::from_secs(reset)))
    };
    let statuses = [
        of(&limits[1], Mode::Enforce, 4, 3600),
        of(&limits[0], Mode::Enforce, 3, 61),
        of(&limits[2], Mode::Shadow { group: 0 }, 1, 1),
    ];
    let decision = Decision::new(Timestamp::EPOCH, statuses);
    assert_eq!(
        headers(HeaderStyle::Provider, &decision),
        [
            "x-ratelimit-limit-requests: 10",
            "x-ratelimit-remaining-requests: 3",
            "x-ratelimit-reset-requests: 1m1s"
        ]
    );
}

#[test]
fn no_headers_without_an_enforced_limit() {
    let limit = bucket("shadow");
    let never = Reply::new(Verdict::Never, 0, Duration::ZERO);
    let shadow = Status::new(&limit, Mode::Shadow { group: 0 }, never);
    for statuses in [vec![], vec![shadow]] {
        let decision = Decision::new(Timestamp::EPOCH, statuses);
        for style in HeaderStyle::ALL {
            assert_eq!(headers(style, &decision), [""; 0]);
        }
    }
}

#[test]
fn limits_without_a_window_have_no_w() {
    let slots = Limit::concurrency(3, Duration::from_secs(60)).unwrap();
    let limits = [slots, Limit::block()];
    let decision = Decision::new(Timestamp::EPOCH, limits.iter().map(full));
    assert_eq!(
        headers(HeaderStyle::Draft11, &decision),
        ["ratelimit-policy: \"concurrency\";q=3,\"block\";q=0", "ratelimit: \"block\";r=0;t=0"]
    );
}

#[test]
fn windows_round_up_and_months_have_31_days() {
    let limits = [
        Limit::sliding_window(Quota::new(5, Duration::from_millis(1500))).unwrap(),
        Limit::calendar_window(9, CalendarUnit::Month, "UTC").unwrap(),
    ];
    let decision = Decision::new(Timestamp::EPOCH, limits.iter().map(full));
    assert_eq!(
        headers(HeaderStyle::Draft11, &decision),
        [
            "ratelimit-policy: \"1500ms\";q=5;w=2,\"month\";q=9;w=2678400",
            "ratelimit: \"1500ms\";r=5;t=0"
        ]
    );
}

#[test]
fn other_units_than_requests_are_named() {
    let tokens = bucket("user").in_unit(Unit::new("tokens").unwrap()).unwrap();
    let decision = Decision::new(Timestamp::EPOCH, [full(&tokens)]);
    assert_eq!(
        headers(HeaderStyle::Draft11, &decision),
        ["ratelimit-policy: \"60s\";q=10;qu=\"tokens\";w=60", "ratelimit: \"60s\";r=10;t=0"]
    );
}

#[test]
fn limits_with_equal_names_get_unique_names() {
    let limits = [bucket("user"), bucket("all"), Limit::block()];
    // A plan can contain one limit for two subjects.
    let statuses = [&limits[0], &limits[1], &limits[1], &limits[2]].map(full);
    let decision = Decision::new(Timestamp::EPOCH, statuses);
    let list = r#""user/60s";q=10;w=60,"all/60s";q=10;w=60,"all/60s/2";q=10;w=60,"block";q=0"#;
    assert_eq!(headers(HeaderStyle::Draft11, &decision)[0], format!("ratelimit-policy: {list}"));
}

/// Shadow limits are not shown, so their names do not collide.
#[test]
fn shadow_limit_with_equal_name_changes_no_name() {
    let (enforced, shadow) = (bucket("user"), bucket("trial"));
    let reply = Reply::new(Verdict::Allow, 10, Duration::ZERO);
    let statuses = [Status::new(&shadow, Mode::Shadow { group: 0 }, reply), full(&enforced)];
    let decision = Decision::new(Timestamp::EPOCH, statuses);
    assert_eq!(
        headers(HeaderStyle::Draft11, &decision),
        ["ratelimit-policy: \"60s\";q=10;w=60", "ratelimit: \"60s\";r=10;t=0"]
    );
}

#[test]
fn share_affects_remaining_but_not_the_limit() {
    let limit = bucket("user");
    let reply = Reply::new(Verdict::Allow, 3, Duration::from_secs(1));
    let share = Status::of_share(&limit, Mode::Enforce, reply, NonZeroU32::new(3).unwrap());
    let decision = Decision::new(Timestamp::EPOCH, [share]);
    assert_eq!(
        headers(HeaderStyle::Draft6, &decision),
        ["ratelimit-limit: 10", "ratelimit-remaining: 3", "ratelimit-reset: 1"]
    );
}

#[test]
fn structured_field_integers_have_at_most_15_digits() {
    let limit = Limit::fixed_window(Quota::per_minute((1 << 53) - 1)).unwrap();
    let decision = Decision::new(Timestamp::EPOCH, [full(&limit)]);
    assert_eq!(
        headers(HeaderStyle::Draft11, &decision),
        [
            "ratelimit-policy: \"60s\";q=999999999999999;w=60",
            "ratelimit: \"60s\";r=999999999999999;t=0"
        ]
    );
    assert_eq!(headers(HeaderStyle::Draft6, &decision)[0], "ratelimit-limit: 999999999999999");
    assert_eq!(headers(HeaderStyle::XUnix, &decision)[0], "x-ratelimit-limit: 9007199254740991");
}

#[test]
fn integer_headers_do_not_allocate() {
    let limiter = LocalLimiter::new(Limit::token_bucket(Quota::per_minute(10)).unwrap());
    let decision = limiter.take("k");
    for style in [HeaderStyle::XUnix, HeaderStyle::XDelta, HeaderStyle::Draft6] {
        let mut sum = 0;
        let allocations = measure(|| {
            style.write(&decision, |_, value| {
                if let FieldValue::Number(number) = value {
                    sum += number;
                }
            });
        });
        assert_eq!(allocations.count_total, 0, "{style:?}");
        assert!(sum > 0);
    }
}

#[test]
fn token_bucket_limit_shown_is_the_burst() {
    let limit = Limit::token_bucket(Quota::per_minute(1).burst(3)).unwrap();
    let limiter = LocalLimiter::builder().limit(limit).clock(ManualClock::new()).build().unwrap();
    let decision = limiter.take("k");
    let figure = |style: HeaderStyle, index: usize| {
        let mut values = Vec::new();
        style.write(&decision, |_, value| values.push(value));
        values.swap_remove(index)
    };
    for style in [HeaderStyle::XUnix, HeaderStyle::XDelta, HeaderStyle::Draft6] {
        assert_eq!(figure(style, 0), FieldValue::Number(3));
        assert_eq!(figure(style, 1), FieldValue::Number(2));
    }
    assert_eq!(figure(HeaderStyle::Draft11, 0), FieldValue::Text("\"60s\";q=3;w=60".into()));
}
