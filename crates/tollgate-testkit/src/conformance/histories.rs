//! Comparison of a store with the oracle, on every field at every step.

use tollgate::Limit;

use super::{Fixture, apply_one, at};
use crate::answer::Answer;
use crate::history::{History, HistoryLevel};
use crate::oracle::Oracle;
use crate::spec::Kind;
use crate::vectors;

/// Number of histories per kind. `TOLLGATE_HISTORIES` overrides it.
const HISTORIES: u64 = 200;
/// Number of steps per history.
const STEPS: usize = 60;

/// Takes and peeks.
pub async fn basic_histories_match_oracle(fixture: &impl Fixture) {
    compare_all(fixture, HistoryLevel::Basic).await;
}

/// Also refunds, debits, pauses and resets.
pub async fn operation_histories_match_oracle(fixture: &impl Fixture) {
    compare_all(fixture, HistoryLevel::Operations).await;
}

/// Also changing parameters and clock steps back.
pub async fn change_histories_match_oracle(fixture: &impl Fixture) {
    compare_all(fixture, HistoryLevel::Changes).await;
}

/// Also leases.
pub async fn lease_histories_match_oracle(fixture: &impl Fixture) {
    if fixture.can_lease() {
        compare_all(fixture, HistoryLevel::Leases).await;
    }
}

/// Takes and reservations.
pub async fn reservation_histories_match_oracle(fixture: &impl Fixture) {
    compare_all(fixture, HistoryLevel::Reservations).await;
}

/// The committed vectors, step by step.
pub async fn golden_vectors_match(fixture: &impl Fixture) {
    for file in vectors::committed() {
        let is_supported =
            |case: &&vectors::Case| fixture.can_lease() || !case.name.starts_with("leases-");
        for case in file.cases.iter().filter(is_supported) {
            let limits: Vec<Limit> =
                case.limits.iter().map(|spec| spec.build().expect("valid limit")).collect();
            for (index, step) in case.steps.iter().enumerate() {
                at(fixture, step.at_us);
                let answer =
                    apply_one(fixture, &case.name, &limits[step.limit], step.operation).await;
                assert_eq!(answer, step.expect, "vector {:?}, step {index}: {step:?}", case.name);
            }
        }
    }
}

async fn compare_all(fixture: &impl Fixture, level: HistoryLevel) {
    let histories = std::env::var("TOLLGATE_HISTORIES").ok();
    let configured = histories.and_then(|count| count.parse().ok());
    let histories = configured.unwrap_or_else(|| fixture.suite_size().of(HISTORIES));
    for kind in Kind::ALL {
        for seed in 0..histories {
            compare(fixture, seed, kind, level).await;
        }
    }
}

/// Compares one history; a failure prints all steps up to the difference.
pub async fn compare(fixture: &impl Fixture, seed: u64, kind: Kind, level: HistoryLevel) {
    let mut history = History::new(seed, kind, level);
    let specs = history.limits().to_vec();
    let limits: Vec<Limit> = specs.iter().map(|spec| spec.build().expect("valid limit")).collect();
    let subject = format!("{kind:?}/{level:?}/{seed}");
    let (mut oracle, mut last, mut log): (_, Option<Answer>, _) = (Oracle::new(), None, Vec::new());
    for _ in 0..STEPS {
        let step = history.next(last.as_ref());
        at(fixture, step.at_us);
        let expected = oracle.apply(&specs[step.limit], step.at_us, step.operation);
        let answer = apply_one(fixture, &subject, &limits[step.limit], step.operation).await;
        log.push(format!(
            "{:>20} limit {} {:?} -> {expected:?}",
            step.at_us, step.limit, step.operation
        ));
        assert_eq!(
            answer,
            expected,
            "history {subject} differs (left: store, right: oracle)\nlimits {specs:#?}\n{}",
            log.join("\n")
        );
        last = Some(expected);
    }
}
