use std::num::NonZeroU32;
use std::time::Duration;

use tollgate::{Outage, Timestamp};

use super::*;
use crate::store::log_intervals::LOG_INTERVAL;

fn error(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, format!("{kind:?}"))
}

fn lose(watch: &StoreWatch) {
    let reason = &error(StoreErrorKind::Timeout);
    watch.on_event(StoreEvent::Failed(reason));
    watch.on_event(StoreEvent::Lost { failures: 5, reason, nodes: NonZeroU32::MIN });
}

#[test]
fn counts_failures_and_keeps_the_last_error_until_a_success() {
    let watch = StoreWatch::default();
    assert_eq!(watch.warning(), None);
    watch.on_event(StoreEvent::Failed(&error(StoreErrorKind::Timeout)));
    watch.on_event(StoreEvent::Failed(&error(StoreErrorKind::Incompatible)));
    assert_eq!(watch.errors(), 2);
    assert_eq!(watch.warning().as_deref(), Some("store call failed: Incompatible"));
    watch.note_decision(&Decision::new(Timestamp::EPOCH, []));
    assert!(watch.warning().is_some(), "a decision without takes needs no store");
    watch.note_success();
    assert_eq!(watch.warning(), None);
}

#[test]
fn shed_requests_are_logged_once_a_minute_and_are_not_failures() {
    let (watch, start) = (StoreWatch::default(), Instant::now());
    let overloaded = error(StoreErrorKind::Overloaded);
    let logged = || watch.state.lock().shed_logged.unwrap();
    for second in 0..90 {
        watch.note_shed(&overloaded, start + Duration::from_secs(second));
        let expected = if second < 60 { (0, 1) } else { (60, 61) };
        assert_eq!(logged(), (start + Duration::from_secs(expected.0), expected.1));
    }
    watch.on_event(StoreEvent::Overloaded(&overloaded));
    assert_eq!((watch.shed(), watch.errors(), watch.losses()), (91, 0, 0));
    assert_eq!(watch.warning(), None);
}

#[test]
fn warns_of_a_lost_store_until_it_is_restored() {
    let watch = StoreWatch::default();
    lose(&watch);
    let warning = watch.warning().unwrap();
    assert_eq!(warning, "store lost, degraded mode: Timeout");
    let loss = watch.loss().expect("a loss");
    assert_eq!(loss.reason, "Timeout");
    let mut outage = Outage::default();
    (outage.lasted, outage.admitted, outage.refused) = (Duration::from_millis(1500), 7, 2);
    watch.on_event(StoreEvent::Restored(outage));
    assert_eq!((watch.warning(), watch.loss()), (None, None));
    let events = watch.events().before(None, 9);
    let [back, lost] = &events[..] else { panic!("{events:?}") };
    assert_eq!((lost.kind, back.kind), (EventKind::StoreLost, EventKind::StoreBack));
    assert_eq!(lost.detail, "circuit breaker open: Timeout");
    assert!(lost.at().as_micros().abs_diff(loss.since.as_micros()) < 1_000_000);
    let detail =
        "after 1.5 s: 7 requests admitted and 2 refused without it; circuit breaker closed";
    assert_eq!(back.detail, detail);
}

#[test]
fn failed_probes_of_a_lost_store_are_not_failed_calls() {
    let watch = StoreWatch::default();
    lose(&watch);
    watch.on_event(StoreEvent::Failed(&error(StoreErrorKind::Timeout)));
    watch.on_event(StoreEvent::Restored(Outage::default()));
    assert_eq!((watch.state.lock().failing_since, watch.errors()), (None, 2));
}

#[test]
fn logs_a_lasting_outage_once_per_interval() {
    let watch = StoreWatch::default();
    lose(&watch);
    let logged = || watch.state.lock().outage_logged.unwrap();
    let first = logged();
    watch.log_ongoing(LocalDecisions::default(), first + LOG_INTERVAL / 2);
    assert_eq!(logged(), first);
    watch.log_ongoing(LocalDecisions::default(), first + LOG_INTERVAL);
    assert_eq!(logged(), first + LOG_INTERVAL);
}

#[test]
fn logs_a_rejection_at_once_and_then_once_a_minute() {
    let watch = StoreWatch::default();
    watch.note_loss_at_start(&error(StoreErrorKind::Unavailable));
    assert_eq!((watch.errors(), watch.losses()), (1, 1));
    assert_eq!(watch.warning().as_deref(), Some("store lost, degraded mode: Unavailable"));
    let logged = || watch.state.lock().rejection_logged;
    let now = Instant::now();
    watch.log_ongoing(LocalDecisions::default(), now);
    assert_eq!(logged(), None);
    watch.on_event(StoreEvent::Failed(&error(StoreErrorKind::Misconfigured)));
    for (seconds, last) in [(1, 1), (60, 1), (61, 61)] {
        watch.log_ongoing(LocalDecisions::default(), now + Duration::from_secs(seconds));
        assert_eq!(logged(), Some(now + Duration::from_secs(last)));
    }
    watch.on_event(StoreEvent::Failed(&error(StoreErrorKind::Timeout)));
    watch.log_ongoing(LocalDecisions::default(), now + Duration::from_secs(200));
    assert_eq!(logged(), Some(now + Duration::from_secs(61)), "no longer rejected");
}

#[test]
fn logs_failed_calls_without_an_outage_once_per_interval() {
    let (watch, now) = (StoreWatch::default(), Instant::now());
    let failed_calls = || watch.state.lock().failed_calls;
    watch.on_event(StoreEvent::Failed(&error(StoreErrorKind::Timeout)));
    watch.note_success();
    watch.log_ongoing(LocalDecisions::default(), now);
    assert_eq!(failed_calls(), 1, "not logged yet: more may follow");
    let later = Instant::now() + FAILURE_GRACE;
    watch.log_ongoing(LocalDecisions::default(), later);
    assert_eq!(failed_calls(), 0);
    watch.on_event(StoreEvent::Failed(&error(StoreErrorKind::Unavailable)));
    watch.note_success();
    let failed = watch.state.lock().failed_call_error.clone();
    assert_eq!(failed.as_deref(), Some("Unavailable"), "the reason is kept after a success");
    watch.log_ongoing(LocalDecisions::default(), later + LOG_INTERVAL / 2);
    assert_eq!(failed_calls(), 1);
    watch.log_ongoing(LocalDecisions::default(), later + LOG_INTERVAL);
    assert_eq!(failed_calls(), 0);
}

#[test]
fn failures_at_the_start_of_an_outage_are_logged_with_it() {
    let (watch, now) = (StoreWatch::default(), Instant::now());
    let logged = || watch.state.lock().failed_calls_logged;
    watch.on_event(StoreEvent::Failed(&error(StoreErrorKind::Timeout)));
    watch.log_ongoing(LocalDecisions::default(), now + 20 * FAILURE_GRACE);
    assert_eq!(logged(), None, "no call has succeeded since, so the store may be lost");
    lose(&watch);
    watch.log_ongoing(LocalDecisions::default(), now + LASTING_FAILURES);
    assert_eq!(logged(), None, "the outage has a line of its own");

    let watch = StoreWatch::default();
    watch.on_event(StoreEvent::Failed(&error(StoreErrorKind::Timeout)));
    let later = Instant::now() + LASTING_FAILURES;
    watch.log_ongoing(LocalDecisions::default(), later);
    assert_eq!(watch.state.lock().failed_calls_logged, Some(later), "without an outage");
}

#[test]
fn logs_a_flapping_store_once_and_then_a_lasting_outage() {
    let (watch, now) = (StoreWatch::default(), Instant::now());
    assert_eq!(watch.note_loss(now), Some(0));
    let later = now + Duration::from_secs(1);
    for _ in 0..3 {
        watch.on_event(StoreEvent::Restored(Outage::default()));
        assert_eq!(watch.note_loss(later), None);
    }
    let log = || watch.state.lock().outage.unwrap().1;
    watch.log_ongoing(LocalDecisions::default(), later + LASTING_OUTAGE / 2);
    assert_eq!(log(), OutageLog::NotLogged);
    watch.log_ongoing(LocalDecisions::default(), later + LASTING_OUTAGE);
    assert_eq!((log(), watch.state.lock().unlogged_outages), (OutageLog::Logged, 0));
    watch.on_event(StoreEvent::Restored(Outage::default()));
    assert_eq!(watch.note_loss(later + LASTING_OUTAGE + LOG_INTERVAL), Some(0));
}
