//! What responses tell of a decision, read back by parsers that are not ours, is what was decided.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panicking, and their helpers too"
)]

mod drawn;
mod read_back;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::collection::vec;
use proptest::prelude::*;
use tollgate::{
    Decision, FieldValue, HeaderStyle, Key, LocalLimiter, LocalLimiterBuilder, ManualClock,
    MemoryStore, Mode, Plan, Status, Subject, Take, Timestamp,
};

use drawn::{cost, limit, step};
use read_back::{item, number, policies};

/// What a structured field can say at most.
const MOST: u64 = 999_999_999_999_999;

/// The header a middleware would send.
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

/// Seconds of so many microseconds, a part of one counted whole.
fn seconds(micros: u128) -> u64 {
    u64::try_from(micros / 1_000_000 + u128::from(!micros.is_multiple_of(1_000_000))).unwrap()
}

fn assert_numbers(decision: &Decision<'_>, deciding: &Status<'_>) {
    let (at, delta) = (decision.at().as_micros(), deciding.reset_after().as_micros());
    let reset = (u128::from(at) + delta).min(u128::from(Timestamp::MAX.as_micros()));
    let (limit, remaining) = (deciding.limit().count(), deciding.remaining());
    for (style, prefix, figures) in [
        (HeaderStyle::XUnix, "x-ratelimit-", [limit, remaining, seconds(reset)]),
        (HeaderStyle::XDelta, "x-ratelimit-", [limit, remaining, seconds(delta)]),
        (HeaderStyle::Draft6, "ratelimit-", [limit.min(MOST), remaining.min(MOST), seconds(delta)]),
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
        let told = (window > 0).then_some(window);
        let expected = HashMap::from([("q", Some(limit.count().min(MOST))), ("w", told)]);
        assert_eq!(policy.numbers(["q", "w"]), expected);
        assert!(names.insert(policy.name.clone()), "{} comes twice", policy.name);
        let full = format!("{}/{}", limit.rule(), limit.name());
        let is_its = policy.name == limit.name() || policy.name.starts_with(&full);
        assert!(is_its, "{} is not {full}", policy.name);
    }
    let told = item(&headers);
    let place = listed.iter().position(|policy| policy.name == told.name);
    assert_eq!(enforced[place.unwrap()], deciding);
    let (remaining, reset) = (deciding.remaining(), seconds(deciding.reset_after().as_micros()));
    let expected = HashMap::from([("r", Some(remaining.min(MOST))), ("t", Some(reset))]);
    assert_eq!(told.numbers(["r", "t"]), expected);
}

fn assert_told(decision: &Decision<'_>) {
    match decision.deciding() {
        Some(deciding) => {
            assert_numbers(decision, deciding);
            assert_structured(decision, deciding);
        }
        None => assert!(HeaderStyle::ALL.iter().all(|style| header(*style, decision).is_empty())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn of_a_limiter(
        limits in vec(limit(), 1..5), history in vec((step(), cost(), any::<bool>()), 1..12),
    ) {
        let clock = ManualClock::new();
        let builder = limits.into_iter().fold(LocalLimiter::builder(), LocalLimiterBuilder::limit);
        let limiter = builder.clock(clock.clone()).build().unwrap();
        for (step, cost, is_peek) in history {
            clock.advance(step);
            let decision =
                if is_peek { limiter.peek_n("k", cost) } else { limiter.take_n("k", cost) };
            assert_told(&decision);
        }
    }

    /// Plans of several rules, with limits of the same name, of two subjects, some only watched.
    #[test]
    fn of_a_plan(
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
            // Two limits that would share a counter are no plan.
            let Ok(plan) = Plan::new(takes) else { continue };
            assert_told(&store.take(&plan));
        }
    }
}

/// The writer is asked at the end of time, too.
#[test]
fn at_the_end_of_time() {
    let clock = ManualClock::new();
    clock.set(Timestamp::MAX);
    let limit = tollgate::Limit::fixed_window(tollgate::Quota::new(5, Duration::from_secs(60)));
    let limiter = LocalLimiter::builder().limit(limit.unwrap()).clock(clock).build().unwrap();
    assert_told(&limiter.take("k"));
}
