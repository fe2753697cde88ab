//! A store beside the oracle, on every field, at every step.

use tollgate::Limit;

use super::{Fixture, ask_one, at};
use crate::answer::Answer;
use crate::history::{History, Wildness};
use crate::oracle::Oracle;
use crate::spec::Kind;
use crate::vectors;

/// Histories of each kind, and moments in each. `TOLLGATE_HISTORIES` asks for more.
const HISTORIES: u64 = 300;
const MOMENTS: usize = 60;

/// Takes and peeks.
pub async fn calm_histories_match_the_oracle(fixture: &impl Fixture) {
    compare_all(fixture, Wildness::Calm).await;
}

/// With refunds, debits, pauses and resets.
pub async fn operated_histories_match_the_oracle(fixture: &impl Fixture) {
    compare_all(fixture, Wildness::Operated).await;
}

/// With numbers that change and clocks that step back.
pub async fn upset_histories_match_the_oracle(fixture: &impl Fixture) {
    compare_all(fixture, Wildness::Upset).await;
}

/// The committed vectors, step by step.
pub async fn golden_vectors_replay(fixture: &impl Fixture) {
    for file in vectors::committed() {
        for case in &file.cases {
            let limits: Vec<Limit> = case
                .limits
                .iter()
                .map(|spec| spec.build().expect("a vector's limit is valid"))
                .collect();
            for (index, step) in case.steps.iter().enumerate() {
                at(fixture, step.at_us);
                let seen = ask_one(fixture, &case.name, &limits[step.limit], step.ask).await;
                assert_eq!(seen, step.expect, "vector {:?}, step {index}: {step:?}", case.name);
            }
        }
    }
}

async fn compare_all(fixture: &impl Fixture, wildness: Wildness) {
    let histories = std::env::var("TOLLGATE_HISTORIES").ok();
    let asked_for = histories.and_then(|count| count.parse().ok());
    let histories = asked_for.unwrap_or_else(|| fixture.extent().of(HISTORIES));
    for kind in Kind::ALL {
        for seed in 0..histories {
            compare(fixture, seed, kind, wildness).await;
        }
    }
}

/// One history; a difference is told with all that led to it.
pub async fn compare(fixture: &impl Fixture, seed: u64, kind: Kind, wildness: Wildness) {
    let mut history = History::new(seed, kind, wildness);
    let specs = history.limits().to_vec();
    let limits: Vec<Limit> =
        specs.iter().map(|spec| spec.build().expect("drawn to be valid")).collect();
    let subject = format!("{kind:?}/{wildness:?}/{seed}");
    let (mut oracle, mut last, mut told): (_, Option<Answer>, _) =
        (Oracle::new(), None, Vec::new());
    for _ in 0..MOMENTS {
        let moment = history.next(last.as_ref());
        at(fixture, moment.at_us);
        let right = oracle.ask(&specs[moment.limit], moment.at_us, moment.ask);
        let seen = ask_one(fixture, &subject, &limits[moment.limit], moment.ask).await;
        told.push(format!(
            "{:>20} limit {} {:?} -> {right:?}",
            moment.at_us, moment.limit, moment.ask
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
