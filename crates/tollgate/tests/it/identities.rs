//! Limits with different identities have separate states, for any number of limits.

use std::time::Duration;

use tollgate::{
    Algorithm, Key, Limit, Listing, ManualClock, MemoryStore, Permit, PermitId, Plan, Quota,
    Subject, Take,
};

fn limit(rule: &str, name: &str) -> Limit {
    let limit = Limit::token_bucket(Quota::per_day(5)).unwrap();
    limit.in_rule(rule).unwrap().named(name).unwrap()
}

fn take(store: &MemoryStore<ManualClock>, subject: &Subject, limit: &Limit) -> u64 {
    let plan = Plan::new([Take::new(Key::new(subject, limit), 1)]).unwrap();
    store.take(&plan).remaining().unwrap()
}

#[test]
fn states_are_found_by_rule_and_name_in_each_store() {
    let stores = [(), ()].map(|()| MemoryStore::builder().clock(ManualClock::new()).build());
    let subject = Subject::of(["k"]);
    let (first, second) = (limit("rule", "first"), limit("rule", "second"));
    for store in &stores {
        // Alternating stores invalidate the registration cached in each limit.
        assert_eq!(take(store, &subject, &first), 4);
        assert_eq!(take(store, &subject, &second), 4);
        assert_eq!(take(store, &subject, &limit("other-rule", "first")), 4);
    }
    for store in &stores {
        assert_eq!(take(store, &subject, &first), 3);
        // A separate value with the same name uses the same state.
        assert_eq!(take(store, &subject, &limit("rule", "first")), 2);
    }
}

/// After 8192 token buckets, states are no longer packed; decisions stay the same.
#[test]
fn more_than_8192_rates_change_no_decision() {
    let store = MemoryStore::builder().clock(ManualClock::new()).build();
    let limit =
        |count: u64| Limit::token_bucket(Quota::per_day(count)).unwrap().named("x").unwrap();
    let short_and_long = |n: u64| [format!("{n}"), format!("a-subject-longer-than-a-slot-{n}")];
    for taken in 1..=3 {
        for n in 1..=9000 {
            for subject in short_and_long(n) {
                let remaining = take(&store, &Subject::of([subject]), &limit(10 * n));
                assert_eq!(remaining, 10 * n - taken, "rate {n}");
            }
        }
    }
    // Under the lowest rate, the used share of 3/90 000 is a fraction of a token.
    for subject in short_and_long(9000) {
        assert_eq!(take(&store, &Subject::of([subject]), &limit(10)), 8);
    }
    assert_eq!(store.occupancy().keys, 18_000);
}

/// After 65 536 limit names, keys contain the identity as text; decisions stay the same.
#[test]
fn more_than_65536_limit_names_change_no_decision() {
    let store = MemoryStore::builder().clock(ManualClock::new()).build();
    let subject = Subject::of(["k"]);
    let names = 66_000;
    for remaining in [4, 3] {
        for n in 0..names {
            let limit = limit("inline", &n.to_string());
            assert_eq!(take(&store, &subject, &limit), remaining, "limit {n}");
        }
    }
    assert_eq!(store.occupancy().keys, names);
    let listing = Listing::all().with_page_size(usize::MAX).with_prefix(":k");
    let page = store.list(&listing).unwrap();
    assert_eq!(page.keys.len(), names);
    assert!(page.keys.iter().any(|key| key.limit == "65999" && key.rule == "inline"));
    let unregistered = limit("inline", "65999");
    store.reset(&Key::new(&subject, &unregistered));
    assert_eq!(take(&store, &subject, &unregistered), 4);

    // A permit also finds such a key.
    let slots = Limit::concurrency(1, Duration::from_secs(1)).unwrap().named("late").unwrap();
    let plan = Plan::new([Take::new(Key::new(&subject, &slots), 1)]).unwrap();
    let plan = plan.with_permit(PermitId::random());
    let permit = Permit::of(&plan, &store.take(&plan)).unwrap();
    let page = store.list(&listing).unwrap();
    assert!(page.keys.iter().any(|key| key.algorithm == Algorithm::Concurrency));
    assert!(store.renew(&permit).is_some() && store.release(&permit));
    assert!(!store.release(&permit));
}
