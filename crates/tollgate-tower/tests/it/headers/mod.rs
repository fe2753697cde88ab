//! Rate limit headers, parsed by independent parsers, match the decision.

mod parsers;
mod strategies;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::collection::vec;
use proptest::prelude::*;
use tollgate::{
    Algorithm, Decision, FieldValue, HeaderStyle, Key, LocalLimiter, LocalLimiterBuilder,
    ManualClock, MemoryStore, Mode, Plan, Status, Subject, Take, Timestamp,
};

use parsers::{go_duration, item, number, policies};
use strategies::{cost, limit, step};

/// Largest integer of a structured field.
const MAX_SF_INTEGER: u64 = 999_999_999_999_999;

/// Returns the headers that the middleware sends.
fn header(style: HeaderStyle, decision: &Decision<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    style.write(decision, |name, value| {
        let value = match value {
            FieldValue::Number(number) => HeaderValue::from(number),
            FieldValue::Text(text) => HeaderValue::try_from(text).unwrap(),
        };
        headers.append(HeaderName::from_static(name), value);
    });
    headers
}

/// Converts microseconds to seconds, rounded up.
fn seconds(micros: u128) -> u64 {
    u64::try_from(micros / 1_000_000 + u128::from(!micros.is_multiple_of(1_000_000))).unwrap()
}

fn assert_numbers(decision: &Decision<'_>, deciding: &Status<'_>) {
    let (at, delta) = (decision.at().as_micros(), deciding.reset_after().as_micros());
    let reset = (u128::from(at) + delta).min(u128::from(Timestamp::MAX.as_micros()));
    let (limit, remaining) = (deciding.limit().capacity(), deciding.remaining());
    for (style, prefix, figures) in [
        (HeaderStyle::XUnix, "x-ratelimit-", [limit, remaining, seconds(reset)]),
        (HeaderStyle::XDelta, "x-ratelimit-", [limit, remaining, seconds(delta)]),
        (
            HeaderStyle::Draft6,
            "ratelimit-",
            [limit.min(MAX_SF_INTEGER), remaining.min(MAX_SF_INTEGER), seconds(delta)],
        ),
    ] {
        let headers = header(style, decision);
        for (name, figure) in ["limit", "remaining", "reset"].into_iter().zip(figures) {
            assert_eq!(number(&headers, &format!("{prefix}{name}")), figure, "{style:?} {name}");
        }
        assert_eq!(headers.len(), 3);
    }
}

fn assert_structured(decision: &Decision<'_>, deciding: &Status<'_>) {
    let headers = header(HeaderStyle::Draft11, decision);
    let listed = policies(&headers);
    let enforced: Vec<&Status<'_>> =
        decision.statuses().iter().filter(|status| status.mode() == Mode::Enforce).collect();
    assert_eq!(listed.len(), enforced.len());
    let mut names = HashSet::new();
    for (policy, status) in listed.iter().zip(&enforced) {
        let limit = status.limit();
        let window = seconds(limit.window().as_micros());
        let window = (window > 0).then_some(window);
        let expected =
            HashMap::from([("q", Some(limit.capacity().min(MAX_SF_INTEGER))), ("w", window)]);
        assert_eq!(policy.numbers(["q", "w"]), expected);
        assert!(names.insert(policy.name.clone()), "{} occurs twice", policy.name);
        let full = format!("{}/{}", limit.rule(), limit.name());
        let is_its = policy.name == limit.name() || policy.name.starts_with(&full);
        assert!(is_its, "{} is not {full}", policy.name);
    }
    let current = item(&headers);
    let place = listed.iter().position(|policy| policy.name == current.name);
    assert_eq!(enforced[place.unwrap()], deciding);
    let (remaining, reset) = (deciding.remaining(), seconds(deciding.reset_after().as_micros()));
    let expected = HashMap::from([("r", Some(remaining.min(MAX_SF_INTEGER))), ("t", Some(reset))]);
    assert_eq!(current.numbers(["r", "t"]), expected);
}

/// Every limit counts requests. Concurrency limits are shown only if there is no other.
fn assert_provider(decision: &Decision<'_>) {
    let headers = header(HeaderStyle::Provider, decision);
    let enforced = decision.statuses().iter().filter(|status| status.mode() == Mode::Enforce);
    let (slots, rates): (Vec<_>, Vec<_>) =
        enforced.partition(|status| status.limit().algorithm() == Algorithm::Concurrency);
    let shown = if rates.is_empty() { slots } else { rates };
    let figures = shown.iter().map(|status: &&Status<'_>| {
        let reset = seconds(status.reset_after().as_micros());
        (status.remaining(), std::cmp::Reverse(reset), status.limit().capacity())
    });
    let shown = ["limit", "remaining"]
        .map(|name| number(&headers, &format!("x-ratelimit-{name}-requests")));
    let reset = go_duration(&headers, "x-ratelimit-reset-requests");
    let (remaining, std::cmp::Reverse(longest), _) = figures.clone().min().unwrap();
    assert_eq!((shown[1], reset), (remaining, longest));
    assert!(
        figures.clone().any(|figures| figures == (remaining, std::cmp::Reverse(reset), shown[0]))
    );
    assert_eq!(headers.len(), 3);
}

fn assert_headers(decision: &Decision<'_>) {
    match decision.deciding() {
        Some(deciding) => {
            assert_numbers(decision, deciding);
            assert_structured(decision, deciding);
            assert_provider(decision);
        }
        None => assert!(HeaderStyle::ALL.iter().all(|style| header(*style, decision).is_empty())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn headers_match_limiter_decisions(
        limits in vec(limit(), 1..5), history in vec((step(), cost(), any::<bool>()), 1..12),
    ) {
        let clock = ManualClock::new();
        let builder = limits.into_iter().fold(LocalLimiter::builder(), LocalLimiterBuilder::limit);
        let limiter = builder.clock(clock.clone()).build().unwrap();
        for (step, cost, is_peek) in history {
            clock.advance(step);
            let decision =
                if is_peek { limiter.peek_n("k", cost) } else { limiter.take_n("k", cost) };
            assert_headers(&decision);
        }
    }

    /// Plans with several rules, equal limit names, two subjects and shadow limits.
    #[test]
    fn headers_match_plan_decisions(
        limits in vec((limit(), 0..3_u8, any::<bool>(), 0..4_u8), 0..8),
        steps in vec((step(), cost()), 1..6),
    ) {
        let clock = ManualClock::new();
        let store = MemoryStore::builder().clock(clock.clone()).build();
        let subjects = [Subject::of(["a"]), Subject::of(["b"])];
        let in_rule = |(limit, rule, other, mode)| {
            let limit: tollgate::Limit = limit;
            (limit.in_rule(&format!("rule-{rule}")).unwrap(), usize::from(other), mode)
        };
        let limits: Vec<_> = limits.into_iter().map(in_rule).collect();
        for (step, cost) in steps {
            clock.advance(step);
            let takes = limits.iter().map(|(limit, subject, mode)| {
                let take = Take::new(Key::new(&subjects[*subject], limit), cost);
                if *mode == 0 { take.shadow(1) } else { take }
            });
            // A plan rejects two limits that share a counter.
            let Ok(plan) = Plan::new(takes) else { continue };
            assert_headers(&store.take(&plan));
        }
    }
}

#[test]
fn headers_saturate_at_the_maximum_timestamp() {
    let clock = ManualClock::new();
    clock.set(Timestamp::MAX);
    let limit = tollgate::Limit::fixed_window(tollgate::Quota::new(5, Duration::from_secs(60)));
    let limiter = LocalLimiter::builder().limit(limit.unwrap()).clock(clock).build().unwrap();
    assert_headers(&limiter.take("k"));
}
