use super::*;
use crate::quota::Quota;

const START: Timestamp = Timestamp::from_micros(1_000_000_000);

fn after(seconds: u64) -> Timestamp {
    START + Duration::from_secs(seconds)
}

fn add(
    admissions: &mut Admissions,
    limit: &Limit,
    second: u64,
    cost: u64,
    permit: Option<PermitId>,
) {
    let at = after(second);
    admissions.add(limit, Admission { at, cost, permit }, at);
}

/// Returns the debits as (cost, age in seconds) at second `now`, after admissions given as (second, cost).
fn debits(limit: &Limit, admitted: &[(u64, u64)], now: u64) -> Vec<(u64, u64)> {
    let mut admissions = Admissions::new(limit);
    for (second, cost) in admitted {
        add(&mut admissions, limit, *second, *cost, None);
    }
    let debits = admissions.debits(limit, after(now));
    debits.iter().map(|debit| (debit.cost, debit.age.as_secs())).collect()
}

#[test]
fn token_bucket_debit_refills_at_the_full_rate() {
    let limit = Limit::token_bucket(Quota::per_minute(60).burst(100)).unwrap();
    assert_eq!(debits(&limit, &[(0, 10), (5, 10)], 10), [(10, 0)]);
    assert_eq!(debits(&limit, &[(0, 10), (5, 10)], 20), []);
    assert_eq!(debits(&limit, &[(0, 400)], 0), [(100, 0)], "at most the capacity");
}

#[test]
fn fixed_window_debit_has_the_age_of_its_window() {
    let limit = Limit::fixed_window(Quota::per_minute(60)).unwrap();
    assert_eq!(debits(&limit, &[(0, 10), (30, 5)], 59), [(15, 59)]);
    assert_eq!(debits(&limit, &[(0, 10), (30, 5)], 60), []);
    assert_eq!(debits(&limit, &[(0, 10), (70, 5)], 80), [(5, 10)]);
}

#[test]
fn sliding_window_debits_each_admission_with_its_age() {
    let limit = Limit::sliding_window(Quota::per_minute(60)).unwrap();
    assert_eq!(debits(&limit, &[(0, 1), (10, 2), (20, 3)], 65), [(2, 55), (3, 45)]);
}

#[test]
fn merged_admissions_never_count_shorter() {
    let limit = Limit::sliding_window(Quota::per_hour(10_000)).unwrap();
    let admitted: Vec<(u64, u64)> = (0..1000).map(|second| (second, 1)).collect();
    let debits = debits(&limit, &admitted, 1000);
    assert!(debits.len() <= MAX_LOG_LEN, "{}", debits.len());
    assert_eq!(debits.iter().map(|(cost, _)| cost).sum::<u64>(), 1000);
    // For every age, the debits up to that age cover at least the admissions up to it.
    for max_age in 1..=1000 {
        let younger = debits.iter().filter(|(_, age)| *age <= max_age);
        let younger = younger.map(|(cost, _)| cost).sum::<u64>();
        assert!(younger >= max_age, "{younger} at {max_age}");
    }
}

#[test]
fn slot_debits_never_exceed_capacity() {
    let limit = Limit::concurrency(100, Duration::from_secs(30)).unwrap();
    let mut admissions = Admissions::new(&limit);
    for number in 0_u32..5000 {
        let permit = PermitId::from_u128(number.into());
        admissions.add(&limit, Admission { at: START, cost: 1, permit }, START);
        assert!(admissions.len() <= 200);
    }
    let newest = admissions.debits(&limit, START).last().and_then(|debit| debit.permit);
    assert_eq!(newest, PermitId::from_u128(4999));
}

#[test]
fn refund_removes_the_newest_admissions_first() {
    let limit = Limit::sliding_window(Quota::per_minute(60)).unwrap();
    let mut admissions = Admissions::new(&limit);
    for second in [0, 10] {
        add(&mut admissions, &limit, second, 3, None);
    }
    admissions.refund(&limit, 4, after(20));
    let debits = admissions.debits(&limit, after(20));
    assert_eq!(debits, [Debit { cost: 2, age: Duration::from_secs(20), permit: None }]);
}

#[test]
fn slots_are_debited_until_they_expire_or_are_released() {
    let limit = Limit::concurrency(10, Duration::from_secs(30)).unwrap();
    let [first, second, third] = [1, 2, 3].map(PermitId::from_u128);
    let mut admissions = Admissions::new(&limit);
    for (permit, at) in [(first, 0), (second, 10), (third, 10)] {
        add(&mut admissions, &limit, at, 1, permit);
    }
    assert!(admissions.release(&limit, second.unwrap(), after(20)));
    assert!(!admissions.release(&limit, second.unwrap(), after(20)));
    assert!(admissions.renew(&limit, first.unwrap(), after(20)));
    let permits: Vec<_> =
        admissions.debits(&limit, after(35)).iter().map(|debit| debit.permit).collect();
    assert_eq!(permits, [first, third]);
}

#[test]
fn expired_slots_are_neither_renewed_nor_released() {
    let limit = Limit::concurrency(10, Duration::from_secs(30)).unwrap();
    let (mut admissions, permit) = (Admissions::new(&limit), PermitId::from_u128(1).unwrap());
    add(&mut admissions, &limit, 0, 1, Some(permit));
    assert!(!admissions.renew(&limit, permit, after(30)));
    assert_eq!(admissions.debits(&limit, after(30)), []);
    let mut admissions = Admissions::new(&limit);
    add(&mut admissions, &limit, 0, 1, Some(permit));
    assert!(!admissions.release(&limit, permit, after(30)));
}

#[test]
fn admission_in_the_past_does_not_refill_later_ones() {
    let limit = Limit::token_bucket(Quota::per_minute(60).burst(100)).unwrap();
    let mut admissions = Admissions::new(&limit);
    add(&mut admissions, &limit, 50, 60, None);
    let past = Admission { at: after(5), cost: 50, permit: None };
    admissions.add(&limit, past, after(50));
    // All 60, and the part of the 50 that 45 seconds have not refilled.
    let debits = admissions.debits(&limit, after(50));
    assert_eq!(debits, [Debit { cost: 65, age: Duration::ZERO, permit: None }]);
}

/// More slots than the limit, as `on_store_loss: allow` admits.
#[test]
fn held_slots_are_remembered_beside_many_expired_ones() {
    let limit = Limit::concurrency(2, Duration::from_secs(30)).unwrap();
    let mut admissions = Admissions::new(&limit);
    let permits = |from, to| (from..=to).filter_map(PermitId::from_u128);
    for permit in permits(1, 62) {
        add(&mut admissions, &limit, 0, 1, Some(permit));
    }
    for permit in permits(63, 66) {
        add(&mut admissions, &limit, 40, 1, Some(permit));
    }
    for permit in permits(63, 66) {
        assert!(admissions.release(&limit, permit, after(41)), "{permit:?}");
    }
}
