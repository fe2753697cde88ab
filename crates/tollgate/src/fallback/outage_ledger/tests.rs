use std::time::Duration;

use super::*;
use crate::algorithm::PermitId;
use crate::memory::MemoryStore;
use crate::plan::{Plan, Take};
use crate::quota::Quota;
use crate::subject::Subject;

const NOW: Timestamp = Timestamp::from_micros(5);

fn admit(ledger: &mut Ledger, key: &Key<'_>, cost: u64) {
    let limit = Arc::new(key.limit().clone());
    ledger.admit(key.subject(), &limit, Admission { at: NOW, cost, permit: None }, NOW);
}

fn costs(batch: &[(Arc<AccountKey>, Account)]) -> Vec<u64> {
    let cost = |account: &Account| match &account.admissions {
        Admissions::Log(log) => log.iter().map(|admission| admission.cost).sum(),
        Admissions::Sum { .. } => 0,
    };
    batch.iter().map(|(_, account)| cost(account)).collect()
}

#[test]
fn account_leaves_the_ledger_once() {
    let limit = Limit::sliding_window(Quota::per_minute(9)).unwrap();
    let (mut ledger, subjects) = (Ledger::new(10), ["a", "b", "c"].map(|name| Subject::of([name])));
    for subject in &subjects {
        admit(&mut ledger, &Key::new(subject, &limit), 2);
        admit(&mut ledger, &Key::new(subject, &limit), 3);
        admit(&mut ledger, &Key::new(subject, &limit), 0);
    }
    // Every account has two debits.
    assert_eq!(costs(&ledger.take_batch(4)), [5, 5]);
    // Admissions during the replay go to new accounts, or to those that still wait.
    subjects.iter().for_each(|subject| admit(&mut ledger, &Key::new(subject, &limit), 1));
    assert_eq!(costs(&ledger.take_batch(3)), [6]);
    assert_eq!(costs(&ledger.take_batch(9)), [1, 1]);
    assert!(ledger.is_empty());
}

#[test]
fn returned_account_is_last_and_has_newer_admissions() {
    let limit = Limit::sliding_window(Quota::per_minute(9)).unwrap();
    let (mut ledger, subjects) = (Ledger::new(3), ["a", "b", "c"].map(|name| Subject::of([name])));
    let keys = subjects.each_ref().map(|subject| Key::new(subject, &limit));
    keys.iter().for_each(|key| admit(&mut ledger, key, 2));
    let (key, account) = ledger.take_batch(1).remove(0);
    // The ledger is full again, with a new account of the same key.
    admit(&mut ledger, &keys[0], 1);
    ledger.end_replay(key, Some(account), NOW);
    assert_eq!(ledger.len(), 3);
    let (key, account) = ledger.take_batch(1).remove(0);
    admit(&mut ledger, &Key::new(&Subject::of(["d"]), &limit), 5);
    ledger.end_replay(key, Some(account), NOW);
    assert_eq!(costs(&ledger.take_batch(9)), [2, 3, 5, 2], "c, a, d and b, above the maximum");
    assert_eq!(ledger.take_counts(), ReplayCounts::default());
}

#[test]
fn each_account_is_visited_once() {
    const KEYS: usize = 20_000;
    let limit = Arc::new(Limit::sliding_window(Quota::per_minute(9)).unwrap());
    let mut ledger = Ledger::new(KEYS);
    for number in 0..KEYS {
        // Accounts of one, two and three debits, so that some do not fit into a batch.
        for _ in 0..=number % 3 {
            let admission = Admission { at: NOW, cost: 1, permit: None };
            ledger.admit(&number.to_string(), &limit, admission, NOW);
        }
    }
    let (mut batches, mut accounts) = (0, 0);
    while !ledger.is_empty() {
        accounts += ledger.take_batch(512).len();
        batches += 1;
    }
    assert_eq!(accounts, KEYS);
    assert!(ledger.visited <= KEYS + batches, "{} visits", ledger.visited);
}

#[test]
fn queue_does_not_grow_with_removed_accounts() {
    let limit = Limit::sliding_window(Quota::per_minute(9)).unwrap();
    let (mut ledger, subject) = (Ledger::new(9), Subject::of(["a"]));
    let key = Key::new(&subject, &limit);
    for _ in 0..10_000 {
        admit(&mut ledger, &key, 1);
        ledger.forget(&key);
    }
    assert!(ledger.queue.len() <= MAX_STALE_KEYS + 1, "{}", ledger.queue.len());
    // Keys of expired accounts leave with them.
    let limit = Arc::new(limit);
    for second in 0..10_000 {
        let at = NOW + Duration::from_secs(second);
        let admission = Admission { at, cost: 1, permit: None };
        ledger.admit(&second.to_string(), &limit, admission, at);
    }
    assert!(ledger.queue.len() <= MAX_STALE_KEYS + 10, "{}", ledger.queue.len());
}

#[test]
fn full_ledger_counts_dropped_keys() {
    let limit = Limit::sliding_window(Quota::per_minute(9)).unwrap();
    let mut ledger = Ledger::new(2);
    for name in ["a", "b", "c", "a", "d"] {
        admit(&mut ledger, &Key::new(&Subject::of([name]), &limit), 1);
    }
    assert_eq!(ledger.take_counts(), ReplayCounts { replayed: 0, dropped: 2 });
    assert_eq!(ledger.take_counts(), ReplayCounts::default());
    let mut costs = costs(&ledger.take_batch(9));
    costs.sort_unstable();
    assert_eq!(costs, [1, 2]);
}

#[test]
fn reset_key_has_no_account() {
    let limit = Limit::concurrency(9, Duration::from_secs(9)).unwrap();
    let (mut ledger, subject) = (Ledger::new(9), Subject::of(["a"]));
    let key = Key::new(&subject, &limit);
    admit(&mut ledger, &key, 1);
    ledger.forget(&key);
    assert!(ledger.is_empty());
}

#[test]
fn slots_of_a_replaying_account_can_be_released() {
    let limit = Limit::concurrency(9, Duration::from_secs(9)).unwrap();
    let (mut ledger, store) = (Ledger::new(9), MemoryStore::new());
    let subjects = ["a", "b"].map(|name| Subject::of([name]));
    let ids = [1, 2].map(|id| PermitId::from_u128(id).unwrap());
    let permits = subjects.iter().zip(ids).map(|(subject, id)| {
        let key = Key::new(subject, &limit);
        let plan = Plan::of_distinct([Take::new(key, 1)]).with_permit(id);
        let admission = Admission { at: NOW, cost: 1, permit: Some(id) };
        ledger.admit(key.subject(), &Arc::new(limit.clone()), admission, NOW);
        Permit::of(&plan, &store.take(&plan)).unwrap()
    });
    let permits: Vec<Permit> = permits.collect();
    // One account leaves for its replay, the other stays.
    assert_eq!(ledger.take_batch(1).len(), 1);
    let held: Vec<&Permit> =
        permits.iter().filter(|permit| ledger.renew(permit, NOW).is_some()).collect();
    assert_eq!(held.len(), 1);
    assert!(ledger.release(held.first().unwrap(), NOW));
    assert_eq!(costs(&ledger.take_batch(9)), [0]);
}

#[test]
fn rest_of_a_replay_excludes_slots_released_meanwhile() {
    let limit = Limit::concurrency(9, Duration::from_secs(9)).unwrap();
    let (mut ledger, store, subject) = (Ledger::new(9), MemoryStore::new(), Subject::of(["a"]));
    let key = Key::new(&subject, &limit);
    let hold = |ledger: &mut Ledger, id| {
        let id = PermitId::from_u128(id).unwrap();
        let plan = Plan::of_distinct([Take::new(key, 1)]).with_permit(id);
        let admission = Admission { at: NOW, cost: 1, permit: Some(id) };
        ledger.admit(key.subject(), &Arc::new(limit.clone()), admission, NOW);
        Permit::of(&plan, &store.take(&plan)).unwrap()
    };
    let permits = [1, 2].map(|id| hold(&mut ledger, id));
    let (account_key, account) = ledger.take_batch(9).remove(0);
    assert!(!ledger.release(&permits[0], NOW));
    // Taken again under the same id, after its release.
    let again = hold(&mut ledger, 1);
    ledger.end_replay(account_key, Some(account), NOW);
    assert!(ledger.release(&again, NOW));
    let (account_key, account) = ledger.take_batch(9).remove(0);
    assert_eq!(account.admissions.len(), 1, "the second permit");
    // All of the rest is released: no account is left.
    ledger.release(&permits[1], NOW);
    ledger.end_replay(account_key, Some(account), NOW);
    assert!(ledger.is_empty());
}

#[test]
fn key_reset_during_its_replay_keeps_only_newer_admissions() {
    let limit = Limit::sliding_window(Quota::per_minute(9)).unwrap();
    let (mut ledger, subjects) = (Ledger::new(9), ["a", "b"].map(|name| Subject::of([name])));
    let keys = subjects.each_ref().map(|subject| Key::new(subject, &limit));
    keys.iter().for_each(|key| admit(&mut ledger, key, 5));
    let batch = ledger.take_batch(9);
    ledger.forget(&keys[0]);
    admit(&mut ledger, &keys[0], 1);
    for (key, account) in batch {
        ledger.end_replay(key, Some(account), NOW);
    }
    assert_eq!(costs(&ledger.take_batch(9)), [1, 5]);
    // The reset does not apply to a later replay.
    admit(&mut ledger, &keys[0], 2);
    for (key, account) in ledger.take_batch(9) {
        ledger.end_replay(key, Some(account), NOW);
    }
    assert_eq!(costs(&ledger.take_batch(9)), [2]);
}

#[test]
fn large_account_fills_a_batch() {
    let limit = Limit::sliding_window(Quota::per_minute(99)).unwrap();
    let (mut ledger, subjects) = (Ledger::new(10), ["a", "b"].map(|name| Subject::of([name])));
    for subject in subjects.iter().flat_map(|subject| [subject; 50]) {
        admit(&mut ledger, &Key::new(subject, &limit), 1);
    }
    assert_eq!(costs(&ledger.take_batch(9)), [50]);
    assert_eq!(costs(&ledger.take_batch(9)), [50]);
}

#[test]
fn expired_accounts_make_room() {
    let limit = Limit::sliding_window(Quota::per_minute(9)).unwrap();
    let (mut ledger, limit) = (Ledger::new(2), Arc::new(limit));
    let mut admit = |name: &str, seconds| {
        let at = NOW + Duration::from_secs(seconds);
        ledger.admit(name, &limit, Admission { at, cost: 1, permit: None }, at);
    };
    for (name, at) in [("a", 0), ("b", 30), ("c", 59), ("d", 60), ("e", 61)] {
        admit(name, at);
    }
    assert_eq!(ledger.take_counts(), ReplayCounts { replayed: 0, dropped: 2 }, "c and e");
}
