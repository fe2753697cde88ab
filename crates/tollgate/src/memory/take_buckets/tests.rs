//! Differential tests: the path for several token buckets decides like the general one.

use std::time::Duration;

use foldhash::fast::FixedState;
use proptest::prelude::*;

use crate::memory::{AtCap, MemoryStore};
use crate::plan::{Key, Plan, Take};
use crate::time::{Clock, ManualClock, Timestamp};
use crate::{Limit, Quota};

type Store = MemoryStore<ManualClock, FixedState>;

/// Subjects of short and long slots, and one that fits neither.
const SUBJECTS: [&str; 4] = [
    "a",
    "0123456789abcdef",
    "user:0123456789:abcdefghij",
    "a-subject-of-more-than-48-bytes-which-is-stored-in-a-box",
];

/// One take of a plan. Subject and limit are indices.
#[derive(Debug, Clone)]
struct Part {
    subject: usize,
    limit: usize,
    cost: u64,
    shadow: Option<u16>,
}

#[derive(Debug, Clone)]
struct Step {
    parts: Vec<Part>,
    /// Change of the time in microseconds.
    time: i64,
    /// Subject and limit of a pause, if there is one.
    pause: Option<(usize, usize)>,
}

/// How a store is set up.
#[derive(Debug, Clone)]
struct Setup {
    max_keys: usize,
    at_cap: AtCap,
    /// Identities that are registered before the first limit.
    identities: usize,
}

/// Returns limits of all algorithms, mostly token buckets. The last two are earlier ones with other parameters.
fn limits() -> Vec<Limit> {
    let quota = |count, micros| Quota::new(count, Duration::from_micros(micros));
    let limits = [
        Limit::token_bucket(quota(3, 1000)),
        Limit::token_bucket(quota(1, 700).burst(5)),
        Limit::token_bucket(quota(7, 13).burst(20)),
        Limit::token_bucket(quota(1000, 1)),
        Limit::token_bucket(quota(2, 1_000_000)),
        Limit::fixed_window(quota(4, 1000)),
        Limit::sliding_window(quota(4, 1000)),
        Limit::sliding_counter(quota(4, 1000)),
        Limit::concurrency(2, Duration::from_micros(1500)),
        Ok(Limit::block()),
        Limit::token_bucket(quota(2, 1000)),
        Limit::token_bucket(quota(3, 500)),
    ];
    let named = |(nth, limit): (usize, Result<Limit, _>)| {
        limit.unwrap().named(&format!("l{}", if nth < 10 { nth } else { nth - 10 })).unwrap()
    };
    limits.into_iter().enumerate().map(named).collect()
}

fn part() -> impl Strategy<Value = Part> {
    // Mostly one subject, token buckets and enforced takes, which is the separate path.
    let subject = prop_oneof![6 => Just(None), 1 => (0..SUBJECTS.len()).prop_map(Some)];
    let limit = prop_oneof![12 => 0usize..5, 1 => 5usize..12];
    let shadow = prop_oneof![12 => Just(None), 1 => (0u16..2).prop_map(Some)];
    let part = |(subject, limit, cost, shadow): (Option<usize>, _, _, _)| Part {
        subject: subject.unwrap_or(usize::MAX),
        limit,
        cost,
        shadow,
    };
    (subject, limit, 0u64..4, shadow).prop_map(part)
}

fn step() -> impl Strategy<Value = Step> {
    let time = prop_oneof![8 => 0i64..400, 1 => -2000i64..0, 1 => 0i64..5_000_000];
    let pause = prop_oneof![20 => Just(None), 1 => (0..SUBJECTS.len(), 0usize..12).prop_map(Some)];
    let parts =
        (0..SUBJECTS.len(), prop::collection::vec(part(), 1..7)).prop_map(|(usual, mut parts)| {
            for part in parts.iter_mut().filter(|part| part.subject == usize::MAX) {
                part.subject = usual;
            }
            parts
        });
    (parts, time, pause).prop_map(|(parts, time, pause)| Step { parts, time, pause })
}

fn setup() -> impl Strategy<Value = Setup> {
    let max_keys = prop_oneof![3 => Just(1000usize), 1 => 0usize..20];
    let at_cap = prop_oneof![Just(AtCap::Allow), Just(AtCap::Deny)];
    // None, all but a few of a block, and all, so that no limit is registered.
    let identities = prop_oneof![8 => Just(0usize), 4 => 55usize..64, 1 => Just(65_536usize)];
    (max_keys, at_cap, identities).prop_map(|(max_keys, at_cap, identities)| Setup {
        max_keys,
        at_cap,
        identities,
    })
}

impl Setup {
    fn store(&self, clock: &ManualClock) -> Store {
        let builder = MemoryStore::builder().max_keys(self.max_keys).at_cap(self.at_cap);
        let store = builder.clock(clock.clone()).hasher(FixedState::default()).build();
        for nth in 0..self.identities {
            store.registry.add_identity(&format!("tother/{nth}"));
        }
        store
    }
}

/// Returns the plan of a step; `None` if two of its takes contradict each other.
fn plan<'a>(step: &Step, limits: &'a [Limit]) -> Option<Plan<'a>> {
    let takes = step.parts.iter().map(|part| {
        let take = Take::new(Key::private(SUBJECTS[part.subject], &limits[part.limit]), part.cost);
        part.shadow.map_or(take, |group| take.shadow(group))
    });
    Plan::new(takes).ok()
}

/// Applies the steps to two stores, with both paths, and compares all results. Returns how many decisions of plans of several
/// takes were made by the separate path.
fn compare(setup: &Setup, steps: &[Step]) -> usize {
    let clock = ManualClock::at(Timestamp::from_micros(10_000_000));
    let (separate, general) = (setup.store(&clock), setup.store(&clock));
    let limits = [limits(), limits()];
    let mut separate_decisions = 0;
    for step in steps {
        let micros = clock.now().as_micros().saturating_add_signed(step.time);
        clock.set(Timestamp::from_micros(micros));
        if let Some((subject, limit)) = step.pause {
            for (store, limits) in [&separate, &general].into_iter().zip(&limits) {
                let key = Key::private(SUBJECTS[subject], &limits[limit]);
                store.pause(&key, Duration::from_micros(700));
            }
        }
        let [Some(one), Some(other)] = limits.each_ref().map(|limits| plan(step, limits)) else {
            continue;
        };
        let expected = general.take_all(other.takes(), None);
        let decision = match separate.take_plan(one.takes()) {
            Some(decision) => {
                separate_decisions += 1;
                decision
            }
            None => separate.take_all(one.takes(), None),
        };
        assert_eq!(decision, expected, "{step:?}");
        assert_eq!(separate.occupancy(), general.occupancy());
    }
    for (one, other) in limits[0].iter().zip(&limits[1]) {
        for subject in SUBJECTS {
            let figures = separate.stats(&Key::private(subject, one));
            assert_eq!(figures, general.stats(&Key::private(subject, other)));
        }
    }
    separate_decisions
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn both_paths_decide_alike(setup in setup(), steps in prop::collection::vec(step(), 1..120)) {
        compare(&setup, &steps);
    }
}

#[test]
fn plans_of_known_buckets_use_the_separate_path() {
    let setup = Setup { max_keys: 100, at_cap: AtCap::Allow, identities: 0 };
    let part = |limit| Part { subject: 2, limit, cost: 1, shadow: None };
    let step = Step { parts: (0..4).map(part).collect(), time: 1, pause: None };
    assert_eq!(compare(&setup, &vec![step; 10]), 9);
}
