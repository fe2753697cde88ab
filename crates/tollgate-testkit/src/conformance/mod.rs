//! One suite for every store: what [`Store`]'s methods mean, as tests.
//!
//! A store's tests say how to make a [`Fixture`] and what runs its futures:
//!
//! ```
//! # mod tests {
//! use tollgate::{ManualClock, MemoryStore, Timestamp};
//! use tollgate_testkit::conformance::Fixture;
//!
//! struct Memory {
//!     clock: ManualClock,
//!     store: MemoryStore<ManualClock>,
//! }
//!
//! impl Fixture for Memory {
//!     type Store = MemoryStore<ManualClock>;
//!     fn store(&self) -> &Self::Store {
//!         &self.store
//!     }
//!     fn set_now(&self, now: Timestamp) {
//!         self.clock.set(now);
//!     }
//! }
//!
//! fn fixture() -> Memory {
//!     let clock = ManualClock::new();
//!     Memory { store: MemoryStore::builder().clock(clock.clone()).build(), clock }
//! }
//!
//! tollgate_testkit::conformance!(fixture(), tollgate_testkit::runtime::block_on);
//! # }
//! ```

pub mod changes;
pub mod decisions;
pub mod histories;
pub mod listing;
pub mod operations;
pub mod permits;
pub mod shadow;

use std::time::Duration;

use tollgate::{Key, Limit, Permit, PermitId, Plan, Quota, Store, Subject, Take, Timestamp};

use crate::answer::{Answer, Operation};
use crate::spec::{Kind, LimitSpec};

/// A store that nobody else uses, whose time a test sets.
pub trait Fixture {
    /// The store.
    type Store: Store;
    /// The store.
    fn store(&self) -> &Self::Store;
    /// Moves its clock, back too.
    fn set_now(&self, now: Timestamp);
    /// How much is asked of it.
    fn extent(&self) -> SuiteSize {
        SuiteSize::Whole
    }
}

/// How much a suite asks of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuiteSize {
    /// All of it.
    Whole,
    /// Every case, with fewer draws in those that have thousands: the same arithmetic has passed all of them,
    /// reached in another way.
    Short,
}

impl SuiteSize {
    /// So many of `whole`.
    pub(crate) fn of(self, whole: u64) -> u64 {
        match self {
            Self::Whole => whole,
            Self::Short => whole.div_ceil(SHORTER),
        }
    }
}

/// By how much a short suite is shorter.
const SHORTER: u64 = 10;

/// Makes a `#[test]` of each case of the suite.
///
/// `$fixture` is an expression, awaited things allowed, that makes a fresh [`Fixture`];
/// `$block_on` runs a future to its end.
#[macro_export]
macro_rules! conformance {
    ($fixture:expr, $block_on:path) => {
        $crate::conformance! { @ $fixture, $block_on,
            decisions: [
                a_bucket_refills_evenly_and_tells_the_exact_wait
                an_idle_key_never_admits_more_than_its_burst
                a_refused_take_debits_no_limit
                a_plan_over_several_subjects_is_all_or_nothing
                costs_on_one_counter_are_merged
                cost_zero_is_a_peek
                a_cost_above_the_burst_never_passes
                a_block_never_passes
                a_retry_is_honest_to_the_microsecond
                unusual_rates_hold_for_a_whole_window
                hostile_subjects_share_nothing
                an_empty_plan_passes
            ]
            shadow: [
                a_shadow_limit_never_refuses
                an_enforced_refusal_debits_no_shadow
                a_shadow_group_passes_or_fails_together
            ]
            operations: [
                a_peek_takes_nothing
                a_refund_is_never_above_full
                a_debit_is_never_below_empty
                an_old_debit_matters_as_far_as_it_still_counts
                a_pause_refuses_until_it_ends
                a_shorter_pause_does_not_end_a_longer_one
                a_reset_forgets_everything
                stats_tell_without_taking
            ]
            permits: [
                a_slot_returns_by_its_permit
                a_slot_returns_by_itself_at_exactly_its_end
                a_renewal_extends_by_the_slots_own_length
                what_has_returned_cannot_be_renewed
                two_permits_are_distinct
                a_forged_permit_gives_nothing_back
                a_renewal_is_all_or_nothing
                slots_and_tokens_are_all_or_nothing
                a_refund_gives_no_slot_back
                a_permit_works_beneath_a_pause
                a_passing_shadow_group_is_part_of_the_permit
                a_release_drops_what_has_returned
                a_mistaken_ttl_heals
            ]
            listing: [
                every_key_in_use_is_listed_once
                a_prefix_narrows_a_listing
                expired_keys_are_not_listed
            ]
            changes: [
                what_was_used_stays_used_when_the_count_changes
                a_shorter_window_counts_what_may_lie_within_it
                a_buckets_used_share_stays_used
                what_has_refilled_stays_refilled_when_numbers_change
                a_changed_algorithm_starts_fresh
                flip_flopping_numbers_never_open_a_hole
                flip_flopping_numbers_never_hold_a_key_for_ever
                a_clock_that_steps_back_costs_at_most_one_refill
                a_repair_within_a_window_is_kept
                a_repair_is_kept_even_by_a_peek
            ]
            histories: [
                calm_histories_match_the_oracle
                operated_histories_match_the_oracle
                upset_histories_match_the_oracle
                golden_vectors_replay
            ]
        }
    };
    (@ $fixture:expr, $block_on:path, $($module:ident: [$($case:ident)*])*) => {
        $($(
            #[test]
            fn $case() {
                $block_on(async {
                    let fixture = $fixture;
                    $crate::conformance::$module::$case(&fixture).await;
                });
            }
        )*)*
    };
}

/// One millisecond, in the microseconds of [`at`].
pub(crate) const MS: u64 = 1000;
/// One second.
pub(crate) const S: u64 = 1_000_000;

/// Sets the fixture's time in microseconds.
pub(crate) fn at(fixture: &impl Fixture, micros: u64) {
    fixture.set_now(Timestamp::from_micros(micros));
}

/// A token bucket of `count` per so many seconds.
pub(crate) fn bucket(count: u64, seconds: u64) -> Limit {
    let quota = Quota::new(count, Duration::from_secs(seconds));
    Limit::token_bucket(quota).expect("small numbers fit")
}

/// One limit of each kind: ten per minute.
pub(crate) fn ten_a_minute(kind: Kind) -> Limit {
    let spec = match kind {
        Kind::CalendarWindow => LimitSpec::calendar(10, crate::spec::Align::Minute, "UTC"),
        _ => LimitSpec::new(kind, 10, 60 * S),
    };
    spec.build().expect("small numbers fit")
}

/// One operation on all `limits` of `subject`; one answer per limit.
pub(crate) async fn ask(
    fixture: &impl Fixture,
    subject: &str,
    limits: &[&Limit],
    ask: Operation,
) -> Vec<Answer> {
    let subject = Subject::of([subject]);
    let keys: Vec<Key<'_>> = limits.iter().map(|limit| Key::new(&subject, limit)).collect();
    let plan =
        |cost: u64| Plan::new(keys.iter().map(|key| Take::new(*key, cost))).expect("limits differ");
    let store = fixture.store();
    let decision = match ask {
        Operation::Take { cost } => store.take(&plan(cost)).await,
        Operation::Peek { cost } => store.peek(&plan(cost)).await,
        Operation::Refund { cost } => store.refund(&plan(cost)).await,
        Operation::Debit { cost, age_us } => {
            store.debit(&plan(cost), Duration::from_micros(age_us)).await
        }
        Operation::Hold { cost, permit } => {
            store.take(&plan(cost).with_permit(permit_id(permit))).await
        }
        Operation::Release { permit } => {
            store.release(&permit_on(&keys, permit)).await.expect("released");
            store.peek(&plan(0)).await
        }
        Operation::Renew { permit } => {
            store.renew(&permit_on(&keys, permit)).await.expect("renewed");
            store.peek(&plan(0)).await
        }
        Operation::Pause { length_us } => {
            for key in &keys {
                store.pause(key, Duration::from_micros(length_us)).await.expect("paused");
            }
            store.peek(&plan(0)).await
        }
        Operation::Reset => {
            for key in &keys {
                store.reset(key).await.expect("reset");
            }
            store.peek(&plan(0)).await
        }
    };
    decision.expect("the store answers").statuses().iter().map(Answer::from).collect()
}

/// A permit by a small number.
pub fn permit_id(number: u64) -> PermitId {
    PermitId::from_u128(number.into()).expect("permits are numbered from 1")
}

/// The permit of this number on these keys, as its holder would show it.
pub fn permit_on(keys: &[Key<'_>], number: u64) -> Permit {
    let held = keys.iter().map(|key| format!("@{}{{{}}}", key.limit().identity(), key.subject()));
    let text = format!("{}{}", permit_id(number), held.collect::<String>());
    text.parse().expect("as a permit writes itself")
}

/// One operation on one limit.
pub(crate) async fn ask_one(
    fixture: &impl Fixture,
    subject: &str,
    limit: &Limit,
    asked: Operation,
) -> Answer {
    ask(fixture, subject, &[limit], asked).await[0]
}

/// Takes `cost` from one limit.
pub(crate) async fn take(
    fixture: &impl Fixture,
    subject: &str,
    limit: &Limit,
    cost: u64,
) -> Answer {
    ask_one(fixture, subject, limit, Operation::Take { cost }).await
}

/// What one limit would say, and its figures.
pub(crate) async fn peek(
    fixture: &impl Fixture,
    subject: &str,
    limit: &Limit,
    cost: u64,
) -> Answer {
    ask_one(fixture, subject, limit, Operation::Peek { cost }).await
}

/// Takes one until refused; how many passed.
pub(crate) async fn drain(fixture: &impl Fixture, subject: &str, limit: &Limit) -> u64 {
    let mut passed = 0;
    while take(fixture, subject, limit, 1).await.is_allowed() {
        passed += 1;
    }
    passed
}
