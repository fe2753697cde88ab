//! Exact text of refusals.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate::algorithm::Reply;
use tollgate::{
    Decision, Limit, LocalLimiter, ManualClock, Mode, OnStoreLoss, Quota, Refusal, RefusalStyle,
    Status, Timestamp, Verdict,
};

fn minute(rule: &str) -> Limit {
    Limit::token_bucket(Quota::per_minute(10)).unwrap().in_rule(rule).unwrap()
}

fn refusing(limit: &Limit, verdict: Verdict) -> Decision<'_> {
    let reply = Reply::new(verdict, 0, Duration::from_secs(60));
    Decision::new(Timestamp::EPOCH, [Status::new(limit, Mode::Enforce, reply)])
}

fn deny(retry_after: Duration) -> Verdict {
    Verdict::Deny { retry_after }
}

fn parsed(refusal: &Refusal<'_>, style: RefusalStyle) -> Value {
    serde_json::from_str(&refusal.body(style)).unwrap()
}

#[test]
fn body_has_the_wait_in_message_and_field() {
    let limit = minute("user");
    let decision = refusing(&limit, deny(Duration::from_millis(44_001)));
    let refusal = Refusal::of(&decision).unwrap();
    assert_eq!((refusal.status(), refusal.retry_after_seconds()), (429, Some(45)));
    assert_eq!(
        refusal.body(RefusalStyle::Simple),
        r#"{"error":"rate_limit_exceeded","message":"Too many requests. Please wait 45 seconds.","retry_after":45}"#
    );
    assert_eq!(
        parsed(&refusal, RefusalStyle::Problem),
        json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title": "Quota exceeded",
            "status": 429,
            "detail": "Too many requests. Please wait 45 seconds.",
            "violated-policies": ["60s"],
            "retry_after": 45,
        })
    );
}

#[test]
fn minimum_wait_is_one_second() {
    let limit = minute("user");
    let decision = refusing(&limit, deny(Duration::from_micros(1)));
    let refusal = Refusal::of(&decision).unwrap();
    assert_eq!(refusal.retry_after_seconds(), Some(1));
    let body = parsed(&refusal, RefusalStyle::Simple);
    assert_eq!(body["message"], "Too many requests. Please wait 1 seconds.");
}

#[test]
fn never_has_no_retry_after() {
    let limiter = LocalLimiter::new(minute("user"));
    let decision = limiter.take_n("k", 11);
    let refusal = Refusal::of(&decision).unwrap();
    assert_eq!((refusal.status(), refusal.retry_after_seconds()), (429, None));
    assert_eq!(
        refusal.body(RefusalStyle::Simple),
        r#"{"error":"rate_limit_exceeded","message":"The request exceeds the limit. Waiting does not help.","retry_after":null}"#
    );
    let problem = parsed(&refusal, RefusalStyle::Problem);
    assert_eq!(problem["detail"], "The request exceeds the limit. Waiting does not help.");
    assert_eq!(problem["retry_after"], Value::Null);
}

#[test]
fn deny_on_store_loss_is_503_and_not_429() {
    let limit = minute("user");
    // Without the store, even a `Never` is not final.
    for (verdict, seconds) in [(deny(Duration::from_secs(1)), 1), (Verdict::Never, 1)] {
        let decision = refusing(&limit, verdict).degraded(OnStoreLoss::Deny);
        let refusal = Refusal::of(&decision).unwrap();
        assert_eq!((refusal.status(), refusal.retry_after_seconds()), (503, Some(seconds)));
        assert!(refusal.is_unavailable());
        assert_eq!(
            refusal.body(RefusalStyle::Simple),
            r#"{"error":"rate_limiter_unavailable","message":"The rate limiter is unavailable. Please wait 1 seconds.","retry_after":1,"allowed":false,"degraded":true}"#
        );
        assert_eq!(
            parsed(&refusal, RefusalStyle::Problem),
            json!({
                "type": "about:blank",
                "title": "Service Unavailable",
                "status": 503,
                "detail": "The rate limiter is unavailable. Please wait 1 seconds.",
                "retry_after": 1,
                "allowed": false,
                "degraded": true,
            })
        );
    }
}

/// An exceeded share is an exceeded limit.
#[test]
fn local_refusal_in_degraded_mode_is_429() {
    let limit = minute("user");
    let decision = refusing(&limit, deny(Duration::from_secs(6))).degraded(OnStoreLoss::Local);
    let refusal = Refusal::of(&decision).unwrap();
    assert_eq!((refusal.status(), refusal.is_unavailable()), (429, false));
}

#[test]
fn allowed_decision_has_no_refusal() {
    let limit = minute("user");
    for loss in [OnStoreLoss::Allow, OnStoreLoss::Local, OnStoreLoss::Deny] {
        let decision = refusing(&limit, Verdict::Allow).degraded(loss);
        assert!(Refusal::of(&decision).is_none());
    }
}

#[test]
fn violated_policies_are_the_exceeded_enforced_limits() {
    let limits = [minute("user"), minute("all"), minute("trial"), Limit::block()];
    let full = Reply::new(Verdict::Allow, 10, Duration::ZERO);
    let empty = Reply::new(deny(Duration::from_secs(6)), 0, Duration::from_secs(60));
    let statuses = [
        Status::new(&limits[0], Mode::Enforce, empty),
        Status::new(&limits[1], Mode::Enforce, full),
        Status::new(&limits[2], Mode::Shadow { group: 0 }, empty),
        Status::new(&limits[3], Mode::Enforce, empty),
    ];
    let decision = Decision::new(Timestamp::EPOCH, statuses);
    let refusal = Refusal::of(&decision).unwrap();
    let rules: Vec<&str> = refusal.violated().map(|status| status.limit().rule()).collect();
    assert_eq!(rules, ["user", "default"]);
    let problem = parsed(&refusal, RefusalStyle::Problem);
    assert_eq!(problem["violated-policies"], json!(["user/60s", "block"]));
}

/// A retry after the reported seconds passes.
#[test]
fn retry_after_seconds_are_sufficient() {
    for micros in [1, 999_999, 1_000_000, 1_000_001, 6_000_000] {
        let clock = ManualClock::new();
        let limit = Limit::token_bucket(Quota::new(1, Duration::from_micros(micros))).unwrap();
        let limiter = LocalLimiter::builder().limit(limit).clock(clock.clone()).build().unwrap();
        assert!(limiter.take("k").is_allowed());
        let refused = limiter.take("k");
        let seconds = Refusal::of(&refused).unwrap().retry_after_seconds().unwrap();
        clock.advance(Duration::from_secs(seconds));
        assert!(limiter.take("k").is_allowed(), "{micros}");
    }
}
