use super::*;
use crate::quota::Quota;

const START: Timestamp = Timestamp::from_micros(1_000_000_000);

fn after(seconds: u64) -> Timestamp {
    START + Duration::from_secs(seconds)
}

fn add(all: &mut Spent, limit: &Limit, second: u64, cost: u64, permit: Option<PermitId>) {
    let at = after(second);
    all.add(limit, Spending { at, cost, permit }, at);
}

/// What is owed at the end of these (second, cost).
fn owed(limit: &Limit, spent: &[(u64, u64)], now: u64) -> Vec<(u64, u64)> {
    let mut all = Spent::new(limit);
    for (second, cost) in spent {
        add(&mut all, limit, *second, *cost, None);
    }
    let debits = all.debits(limit, after(now));
    debits.iter().map(|debit| (debit.cost, debit.age.as_secs())).collect()
}

#[test]
fn a_bucket_owes_what_has_not_come_back_at_the_whole_rate() {
    let limit = Limit::token_bucket(Quota::per_minute(60).burst(100)).unwrap();
    assert_eq!(owed(&limit, &[(0, 10), (5, 10)], 10), [(10, 0)]);
    assert_eq!(owed(&limit, &[(0, 10), (5, 10)], 20), []);
    assert_eq!(owed(&limit, &[(0, 400)], 0), [(100, 0)], "no more than it can hold");
}

#[test]
fn a_window_owes_all_of_it_from_when_it_opened_until_it_closes() {
    let limit = Limit::fixed_window(Quota::per_minute(60)).unwrap();
    assert_eq!(owed(&limit, &[(0, 10), (30, 5)], 59), [(15, 59)]);
    assert_eq!(owed(&limit, &[(0, 10), (30, 5)], 60), []);
    assert_eq!(owed(&limit, &[(0, 10), (70, 5)], 80), [(5, 10)]);
}

#[test]
fn a_log_owes_each_spending_at_its_age() {
    let limit = Limit::sliding_window(Quota::per_minute(60)).unwrap();
    assert_eq!(owed(&limit, &[(0, 1), (10, 2), (20, 3)], 65), [(2, 55), (3, 45)]);
}

#[test]
fn many_spendings_are_few_debits_that_count_no_shorter() {
    let limit = Limit::sliding_window(Quota::per_hour(10_000)).unwrap();
    let spent: Vec<(u64, u64)> = (0..1000).map(|second| (second, 1)).collect();
    let owed = owed(&limit, &spent, 1000);
    assert!(owed.len() <= MOST_APART, "{}", owed.len());
    assert_eq!(owed.iter().map(|(cost, _)| cost).sum::<u64>(), 1000);
    // Of those younger than an age no fewer are owed than were spent.
    for age in 1..=1000 {
        let younger = owed.iter().filter(|(_, old)| *old <= age).map(|(cost, _)| cost).sum::<u64>();
        assert!(younger >= age, "{younger} at {age}");
    }
}

#[test]
fn no_more_slots_are_owed_than_there_are() {
    let limit = Limit::concurrency(100, Duration::from_secs(30)).unwrap();
    let mut spent = Spent::new(&limit);
    for number in 0_u32..5000 {
        let permit = PermitId::from_u128(number.into());
        spent.add(&limit, Spending { at: START, cost: 1, permit }, START);
        assert!(spent.len() <= 200);
    }
    let newest = spent.debits(&limit, START).last().and_then(|debit| debit.permit);
    assert_eq!(newest, PermitId::from_u128(4999));
}

#[test]
fn what_was_spent_last_is_given_back_first() {
    let limit = Limit::sliding_window(Quota::per_minute(60)).unwrap();
    let mut spent = Spent::new(&limit);
    for second in [0, 10] {
        add(&mut spent, &limit, second, 3, None);
    }
    spent.refund_receipt(&limit, 4, after(20));
    let debits = spent.debits(&limit, after(20));
    assert_eq!(debits, [Debit { cost: 2, age: Duration::from_secs(20), permit: None }]);
}

#[test]
fn slots_are_owed_until_they_return_or_are_given_back() {
    let limit = Limit::concurrency(10, Duration::from_secs(30)).unwrap();
    let [one, other, third] = [1, 2, 3].map(PermitId::from_u128);
    let mut spent = Spent::new(&limit);
    for (permit, second) in [(one, 0), (other, 10), (third, 10)] {
        add(&mut spent, &limit, second, 1, permit);
    }
    assert!(spent.release(&limit, other.unwrap(), after(20)));
    assert!(!spent.release(&limit, other.unwrap(), after(20)));
    assert!(spent.renew(&limit, one.unwrap(), after(20)));
    let permits: Vec<_> =
        spent.debits(&limit, after(35)).iter().map(|debit| debit.permit).collect();
    assert_eq!(permits, [one, third]);
}
#[test]
fn slots_that_have_returned_are_neither_renewed_nor_given_back() {
    let limit = Limit::concurrency(10, Duration::from_secs(30)).unwrap();
    let (mut spent, permit) = (Spent::new(&limit), PermitId::from_u128(1).unwrap());
    add(&mut spent, &limit, 0, 1, Some(permit));
    assert!(!spent.renew(&limit, permit, after(30)));
    assert_eq!(spent.debits(&limit, after(30)), []);
    let mut spent = Spent::new(&limit);
    add(&mut spent, &limit, 0, 1, Some(permit));
    assert!(!spent.release(&limit, permit, after(30)));
}

#[test]
fn what_was_spent_some_time_ago_does_not_let_the_rest_come_back_sooner() {
    let limit = Limit::token_bucket(Quota::per_minute(60).burst(100)).unwrap();
    let mut spent = Spent::new(&limit);
    add(&mut spent, &limit, 50, 60, None);
    let long_ago = Spending { at: after(5), cost: 50, permit: None };
    spent.add(&limit, long_ago, after(50));
    // All of the 60, and of the 50 what 45 seconds have left.
    let debits = spent.debits(&limit, after(50));
    assert_eq!(debits, [Debit { cost: 65, age: Duration::ZERO, permit: None }]);
}
