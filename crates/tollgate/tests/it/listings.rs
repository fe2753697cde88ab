//! Listings contain the limit of every key, also inline limits.

use std::collections::HashMap;
use std::time::Duration;

use tollgate::algorithm::CalendarUnit;
use tollgate::{Key, Limit, Listing, ManualClock, MemoryStore, Plan, Quota, Subject, Take};

type Store = MemoryStore<ManualClock>;

fn store() -> Store {
    MemoryStore::builder().clock(ManualClock::new()).build()
}

fn take(store: &Store, subject: &str, limit: &Limit) {
    let subject = Subject::of([subject]);
    let plan = Plan::new([Take::new(Key::new(&subject, limit), 1)]).unwrap();
    assert!(store.take(&plan).is_allowed());
}

fn known(store: &Store) -> HashMap<String, Option<Limit>> {
    let page = store.list(&Listing::all().with_page_size(usize::MAX)).unwrap();
    page.keys.into_iter().map(|key| (key.subject, key.known)).collect()
}

/// Returns one limit per algorithm with this count, all with the same name.
fn limits(count: u64) -> Vec<Limit> {
    let quota = Quota::new(count, Duration::from_secs(60));
    let limits = [
        Limit::token_bucket(quota),
        Limit::sliding_window(quota),
        Limit::sliding_counter(quota),
        Limit::fixed_window(quota),
        Limit::calendar_window(count, CalendarUnit::Month, "Europe/Zurich"),
        Limit::concurrency(count, Duration::from_secs(60)),
    ];
    limits.into_iter().map(|limit| limit.unwrap().named("inline").unwrap()).collect()
}

#[test]
fn keys_with_one_identity_list_their_own_limits() {
    for (ten, twenty) in limits(10).into_iter().zip(limits(20)) {
        let store = store();
        for (subject, limit) in
            [("a", &ten), ("b", &twenty), ("a-subject-longer-than-what-fits-a-slot", &twenty)]
        {
            take(&store, subject, limit);
            assert_eq!(known(&store)[&format!(":{subject}")].as_ref(), Some(limit));
        }
        assert_eq!(known(&store)[":a"], Some(ten), "unchanged by other keys");
    }
}

#[test]
fn key_lists_the_limit_of_its_last_operation() {
    for (ten, twenty) in limits(10).into_iter().zip(limits(20)) {
        let store = store();
        for limit in [&ten, &twenty, &ten] {
            take(&store, "k", limit);
            assert_eq!(known(&store)[":k"].as_ref(), Some(limit));
        }
        let subject = Subject::of(["k"]);
        store.pause(&Key::new(&subject, &ten), Duration::from_secs(1));
        assert_eq!(known(&store)[":k"], Some(ten), "also when paused");
    }
}

/// The same rate from different numbers: the state is shared, but the listed limits differ.
#[test]
fn equal_rates_from_different_numbers_stay_distinct() {
    let store = store();
    let by_minute = Limit::token_bucket(Quota::per_minute(60).burst(5)).unwrap();
    let by_second = Limit::token_bucket(Quota::per_second(1).burst(5)).unwrap();
    let [by_minute, by_second] = [by_minute, by_second].map(|limit| limit.named("x").unwrap());
    take(&store, "k", &by_minute);
    take(&store, "k", &by_second);
    assert_eq!(known(&store)[":k"].as_ref(), Some(&by_second));
    assert_eq!(store.stats(&Key::new(&Subject::of(["k"]), &by_minute)).remaining(), 3);
}

/// The registry of limits is bounded; keys of further limits are listed without their limit.
#[test]
fn lists_only_registered_limits_after_a_flood() {
    let store = store();
    let bucket = |count| Limit::token_bucket(Quota::per_day(count)).unwrap().named("b").unwrap();
    let window = |count| Limit::fixed_window(Quota::per_day(count)).unwrap().named("w").unwrap();
    for n in 1..=8200 {
        take(&store, &format!("b{n}"), &bucket(n));
    }
    for n in 1..=57_350 {
        take(&store, &format!("w{n}"), &window(n));
    }
    let known = known(&store);
    for (subject, limit) in [
        (":b8192", Some(bucket(8192))),
        (":b8193", None),
        (":w57343", Some(window(57_343))),
        (":w57344", None),
    ] {
        assert_eq!(known[subject], limit, "{subject}");
    }
}
