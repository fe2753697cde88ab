use std::time::Duration;

use super::*;
use crate::memory::MemoryStore;
use crate::permit::PermitId;
use crate::plan::{Plan, Take};
use crate::quota::Quota;
use crate::subject::Subject;

const NOW: Timestamp = Timestamp::from_micros(5);

fn spend(ledger: &mut Ledger, key: &Key<'_>, cost: u64) {
    let limit = Arc::new(key.limit().clone());
    ledger.spend(key.subject(), &limit, Spending { at: NOW, cost, permit: None }, NOW);
}

fn costs(left: &[(Name, Account)]) -> Vec<u64> {
    let owed = |account: &Account| match &account.spent {
        Spent::Log(log) => log.iter().map(|spending| spending.cost).sum(),
        Spent::Sum { .. } => 0,
    };
    left.iter().map(|(_, account)| owed(account)).collect()
}

#[test]
fn what_leaves_does_not_come_back() {
    let limit = Limit::sliding_window(Quota::per_minute(9)).unwrap();
    let (mut ledger, subjects) = (Ledger::new(10), ["a", "b", "c"].map(|name| Subject::of([name])));
    for subject in &subjects {
        spend(&mut ledger, &Key::new(subject, &limit), 2);
        spend(&mut ledger, &Key::new(subject, &limit), 3);
        spend(&mut ledger, &Key::new(subject, &limit), 0);
    }
    // Each is two debits.
    assert_eq!(costs(&ledger.leave(4)), [5, 5]);
    // What is spent meanwhile is another matter.
    subjects.iter().for_each(|subject| spend(&mut ledger, &Key::new(subject, &limit), 1));
    assert_eq!(costs(&ledger.leave(9)), [5]);
    assert_eq!(costs(&ledger.leave(9)), [1, 1, 1]);
    assert!(ledger.is_empty());
}

#[test]
fn it_grows_no_larger_than_it_may_and_says_what_it_left_out() {
    let limit = Limit::sliding_window(Quota::per_minute(9)).unwrap();
    let mut ledger = Ledger::new(2);
    for name in ["a", "b", "c", "a", "d"] {
        spend(&mut ledger, &Key::new(&Subject::of([name]), &limit), 1);
    }
    assert_eq!(ledger.take_told(), Told { told: 0, untold: 2 });
    assert_eq!(ledger.take_told(), Told::default());
    let mut left = costs(&ledger.leave(9));
    left.sort_unstable();
    assert_eq!(left, [1, 2]);
}

#[test]
fn a_key_that_is_reset_owes_nothing() {
    let limit = Limit::concurrency(9, Duration::from_secs(9)).unwrap();
    let (mut ledger, subject) = (Ledger::new(9), Subject::of(["a"]));
    let key = Key::new(&subject, &limit);
    spend(&mut ledger, &key, 1);
    ledger.forget(&key);
    assert!(ledger.is_empty());
}
#[test]
fn what_is_leaving_can_still_be_given_back() {
    let limit = Limit::concurrency(9, Duration::from_secs(9)).unwrap();
    let (mut ledger, store) = (Ledger::new(9), MemoryStore::new());
    let subjects = ["a", "b"].map(|name| Subject::of([name]));
    let permits = [1, 2].map(|id| PermitId::from_u128(id).unwrap());
    let held = subjects.iter().zip(permits).map(|(subject, id)| {
        let key = Key::new(subject, &limit);
        let plan = Plan::of_distinct([Take::new(key, 1)]).with_permit(id);
        let spending = Spending { at: NOW, cost: 1, permit: Some(id) };
        ledger.spend(key.subject(), &Arc::new(limit.clone()), spending, NOW);
        Permit::of(&plan, &store.take(&plan)).unwrap()
    });
    let held: Vec<Permit> = held.collect();
    // The store could be told of one, and not of the other.
    assert_eq!(ledger.leave(1).len(), 1);
    let left: Vec<&Permit> = held.iter().filter(|it| ledger.renew(it, NOW).is_some()).collect();
    assert_eq!(left.len(), 1);
    assert!(ledger.release(left.first().unwrap(), NOW));
    assert_eq!(costs(&ledger.leave(9)), [0]);
}

#[test]
fn one_that_owes_much_leaves_alone() {
    let limit = Limit::sliding_window(Quota::per_minute(99)).unwrap();
    let (mut ledger, subjects) = (Ledger::new(10), ["a", "b"].map(|name| Subject::of([name])));
    for subject in subjects.iter().flat_map(|subject| [subject; 50]) {
        spend(&mut ledger, &Key::new(subject, &limit), 1);
    }
    assert_eq!(costs(&ledger.leave(9)), [50]);
    assert_eq!(costs(&ledger.leave(9)), [50]);
}

#[test]
fn who_owes_nothing_any_more_makes_room() {
    let limit = Limit::sliding_window(Quota::per_minute(9)).unwrap();
    let (mut ledger, shared) = (Ledger::new(2), Arc::new(limit));
    let mut spend = |name: &str, seconds| {
        let at = NOW + Duration::from_secs(seconds);
        ledger.spend(name, &shared, Spending { at, cost: 1, permit: None }, at);
    };
    for (name, at) in [("a", 0), ("b", 30), ("c", 59), ("d", 60), ("e", 61)] {
        spend(name, at);
    }
    assert_eq!(ledger.take_told(), Told { told: 0, untold: 2 }, "c and e found no place");
}
