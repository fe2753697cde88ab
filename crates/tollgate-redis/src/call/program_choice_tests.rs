//! Which program decides a call.

use std::time::Duration;

use tokio::time::Instant;
use tollgate::{Key, Limit, Quota, Subject, Timestamp};

use super::{Batch, EncodedTake, KeyForm, QueuedPlan, Verb, take_of};
use crate::keys::Keys;
use crate::limit_code::Letter;
use crate::script::Entry;

const WINDOW: Duration = Duration::from_secs(60);

fn quota() -> Quota {
    Quota::new(5, WINDOW)
}

fn bucket(name: &str) -> Limit {
    Limit::token_bucket(quota()).and_then(|limit| limit.named(name)).unwrap()
}

fn take(limit: &Limit, group: u8) -> EncodedTake {
    let subject = Subject::of(["s"]);
    let take =
        take_of(&Key::new(&subject, limit), 1, &Keys::new("rl:".to_owned()), Timestamp::EPOCH);
    EncodedTake { group, ..take }
}

/// Returns takes from token buckets in these groups.
fn buckets<const N: usize>(groups: [u8; N]) -> Vec<EncodedTake> {
    let numbered = groups.into_iter().enumerate();
    numbered.map(|(nth, group)| take(&bucket(&format!("b{nth}")), group)).collect()
}

fn entry(plans: impl IntoIterator<Item = (Verb, Vec<EncodedTake>)>) -> Entry {
    let new = |(verb, takes): (Verb, Vec<EncodedTake>)| {
        QueuedPlan::new(verb, takes.into(), Instant::now() + WINDOW).0
    };
    let plans = plans.into_iter().map(new).collect();
    Batch::new(plans, "channel", None, KeyForm::Declared).1.entry
}

#[test]
fn plans_of_token_buckets_use_the_leanest_program() {
    let mixed =
        [(Verb::Take, buckets([0; 5])), (Verb::Peek, buckets([0])), (Verb::Peek, buckets([0; 2]))];
    assert_eq!(entry(mixed), Entry::DecideBuckets);
    // All in one shadow group.
    assert_eq!(entry([(Verb::Take, buckets([1; 3]))]), Entry::DecideBuckets);
}

#[test]
fn other_plans_use_a_larger_program() {
    let of_buckets = Entry::Decide(Letter::TokenBucket);
    assert_eq!(entry([(Verb::Take, buckets([0, 1]))]), of_buckets);
    assert_eq!(entry([(Verb::Take, buckets([0; 2])), (Verb::Take, buckets([1, 2]))]), of_buckets);
    assert_eq!(entry([(Verb::Refund, buckets([0; 2]))]), Entry::Operate);
    assert_eq!(
        entry([(Verb::Take, buckets([0; 2])), (Verb::Refund, buckets([0]))]),
        Entry::Operate
    );
    let inline = bucket("b").in_rule("inline").unwrap();
    assert_eq!(entry([(Verb::Take, [buckets([0]), vec![take(&inline, 0)]].concat())]), of_buckets);
    let window = take(&Limit::sliding_window(quota()).unwrap(), 0);
    assert_eq!(entry([(Verb::Take, [buckets([0]), vec![window]].concat())]), Entry::Operate);
}
