//! A store beside the oracle, on every field, at every step.

use tollgate::Limit;

use super::{Fixture, ask_one, at};
use crate::answer::Answer;
use crate::history::{History, HistoryLevel};
use crate::oracle::Oracle;
use crate::spec::Kind;
use crate::vectors;

/// Histories of each kind, and moments in each. `TOLLGATE_HISTORIES` asks for more.
const HISTORIES: u64 = 300;
const MOMENTS: usize = 60;

/// Takes and peeks.
pub async fn basic_histories_match_oracle(fixture: &impl Fixture) {
    compare_all(fixture, HistoryLevel::Basic).await;
}

/// With refunds, debits, pauses and resets.
pub async fn operation_histories_match_oracle(fixture: &impl Fixture) {
    compare_all(fixture, HistoryLevel::Operations).await;
}

/// With numbers that change and clocks that step back.
pub async fn change_histories_match_oracle(fixture: &impl Fixture) {
    compare_all(fixture, HistoryLevel::Changes).await;
}

/// The committed vectors, step by step.
pub async fn golden_vectors_match(fixture: &impl Fixture) {
    for file in vectors::committed() {
        for case in &file.cases {
            let limits: Vec<Limit> = case
                .limits
                .iter()
                .map(|spec| spec.build().expect("a vector's limit is valid"))
                .collect();
            for (index, step) in case.steps.iter().enumerate() {
                at(fixture, step.at_us);
                let seen = ask_one(fixture, &case.name, &limits[step.limit], step.operation).await;
                assert_eq!(seen, step.expect, "vector {:?}, step {index}: {step:?}", case.name);
            }
        }
    }
}

async fn compare_all(fixture: &impl Fixture, level: HistoryLevel) {
    let histories = std::env::var("TOLLGATE_HISTORIES").ok();
    let asked_for = histories.and_then(|count| count.parse().ok());
    let histories = asked_for.unwrap_or_else(|| fixture.suite_size().of(HISTORIES));
    for kind in Kind::ALL {
        for seed in 0..histories {
            compare(fixture, seed, kind, level).await;
        }
    }
}

/// One history; a difference is told with all that led to it.
pub async fn compare(fixture: &impl Fixture, seed: u64, kind: Kind, level: HistoryLevel) {
    let mut history = History::new(seed, kind, level);
    let specs = history.limits().to_vec();
    let limits: Vec<Limit> =
        specs.iter().map(|spec| spec.build().expect("drawn to be valid")).collect();
    let subject = format!("{kind:?}/{level:?}/{seed}");
    let (mut oracle, mut last, mut told): (_, Option<Answer>, _) =
        (Oracle::new(), None, Vec::new());
    for _ in 0..MOMENTS {
        let moment = history.next(last.as_ref());
        at(fixture, moment.at_us);
        let right = oracle.apply(&specs[moment.limit], moment.at_us, moment.operation);
        let seen = ask_one(fixture, &subject, &limits[moment.limit], moment.operation).await;
        told.push(format!(
            "{:>20} limit {} {:?} -> {right:?}",
            moment.at_us, moment.limit, moment.operation
        ));
        assert_eq!(
            seen,
            right,
            "history {subject} differs (left the store, right the oracle)\nlimits {specs:#?}\n{}",
            told.join("\n")
        );
        last = Some(right);
    }
}
