//! Decisions on existing keys do not allocate.

use allocation_counter::measure;
use tollgate::lease::{LeaseOutcome, LeaseTable, LeaseTime};
use tollgate::{
    Key, LeaseSize, Limit, LocalLimiter, ManualClock, MemoryStore, Plan, Quota, Subject, Take,
    Timestamp,
};

fn assert_no_allocation(limiter: &LocalLimiter<ManualClock>) {
    let long_key = "a-subject-longer-than-what-fits-into-a-slot";
    for key in ["user:1", long_key] {
        assert!(limiter.take(key).is_allowed());
        let allocations = measure(|| {
            for _ in 0..1000 {
                let _ = limiter.take(key);
                let _ = limiter.peek(key);
                let _ = limiter.refund(key, 1);
            }
        });
        assert_eq!(allocations.count_total, 0, "{allocations:?}");
    }
}

#[test]
fn decision_with_one_limit_does_not_allocate() {
    let quota = Quota::per_minute(10);
    for limit in [
        Limit::token_bucket(quota),
        Limit::sliding_counter(quota),
        Limit::fixed_window(quota),
        Limit::calendar_window(10, tollgate::algorithm::CalendarUnit::Day, "Europe/Zurich"),
    ] {
        let builder = LocalLimiter::builder().limit(limit.unwrap()).clock(ManualClock::new());
        assert_no_allocation(&builder.build().unwrap());
    }
}

#[test]
fn decision_with_two_limits_does_not_allocate() {
    let builder = LocalLimiter::builder()
        .limit(Limit::token_bucket(Quota::per_minute(10)).unwrap())
        .limit(Limit::token_bucket(Quota::per_hour(100)).unwrap())
        .clock(ManualClock::new());
    assert_no_allocation(&builder.build().unwrap());
}

/// Each take is so late that the log is empty.
#[test]
fn infrequent_sliding_window_takes_do_not_allocate() {
    let clock = ManualClock::new();
    let builder =
        LocalLimiter::builder().limit(Limit::sliding_window(Quota::per_minute(4)).unwrap());
    let limiter = builder.clock(clock.clone()).build().unwrap();
    let _ = limiter.take("user:1");
    let allocations = measure(|| {
        for _ in 0..1000 {
            clock.advance(std::time::Duration::from_secs(60));
            assert!(limiter.take("user:1").is_allowed());
        }
    });
    assert_eq!(allocations.count_total, 0, "{allocations:?}");
}

#[test]
fn refusal_does_not_allocate() {
    let builder = LocalLimiter::builder().limit(Limit::sliding_window(Quota::per_day(1)).unwrap());
    let limiter = builder.clock(ManualClock::new()).build().unwrap();
    assert!(limiter.take("user:1").is_allowed());
    let allocations = measure(|| {
        for _ in 0..1000 {
            assert!(!limiter.take("user:1").is_allowed());
        }
    });
    assert_eq!(allocations.count_total, 0, "{allocations:?}");
}

/// Leases that many keys, and returns the bytes that the table holds.
fn bytes_of_leases(keys: usize) -> i64 {
    let limit = Limit::token_bucket(Quota::per_minute(60_000)).unwrap().with_lease(LeaseSize::Auto);
    let store = MemoryStore::builder().clock(ManualClock::new()).build();
    let subjects: Vec<Subject> =
        (0..keys).map(|key| Subject::of([format!("customer-{key:06}")])).collect();
    let plan = |key: usize| Plan::new([Take::new(Key::new(&subjects[key], &limit), 1)]).unwrap();
    // The store has seen all keys, so that only the table grows.
    (0..keys).for_each(|key| assert!(store.take(&plan(key)).is_allowed()));
    let mut table = None;
    let allocations = measure(|| {
        let leases = LeaseTable::new(2 * keys);
        leases.enable();
        for plan in (0..keys).map(plan) {
            let request = loop {
                match leases.spend(&plan, Timestamp::EPOCH, LeaseTime::default()) {
                    LeaseOutcome::Request(request) => break request,
                    _ => continue,
                }
            };
            let reply = store.lease(&plan, request.wanted());
            request.finish(reply.as_ref());
        }
        table = Some(leases);
    });
    assert_eq!(table.unwrap().stats(LeaseTime::default()).held, keys as u64);
    allocations.bytes_current
}

#[test]
fn a_leased_key_takes_little_memory() {
    let [none, few, many] = [0, 160, 4000].map(bytes_of_leases);
    println!("bytes of a lease table: {none} unused, {few} with 160 keys, {many} with 4,000 keys");
    assert!(few <= 1 << 20, "{few} bytes with few leases");
    assert!((many - few) / (4000 - 160) <= 1280, "{} bytes per key", (many - few) / (4000 - 160));
}
