//! Conformance suite: tests of the contract of [`Store`], for every store.
//!
//! The tests of a store create a [`Fixture`] and select an executor:
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

mod apply;
pub mod changes;
pub mod decisions;
pub mod histories;
pub mod listing;
pub mod operations;
pub mod permits;
pub mod reservations;
pub mod shadow;

use std::time::Duration;

pub(crate) use apply::apply;
pub use apply::{permit_id, permit_on};
use tollgate::{Limit, Quota, Store, Timestamp};

use crate::answer::{Answer, Operation};
use crate::spec::{Kind, LimitSpec};

/// A store for one test, with a settable clock.
pub trait Fixture {
    /// Type of the store.
    type Store: Store;
    /// Store under test.
    fn store(&self) -> &Self::Store;
    /// Sets the clock, forwards or backwards.
    fn set_now(&self, now: Timestamp);
    /// Whether the store grants leases.
    fn can_lease(&self) -> bool {
        true
    }
    /// Number of random cases to run.
    fn suite_size(&self) -> SuiteSize {
        SuiteSize::Full
    }
}

/// Number of random cases in a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuiteSize {
    /// All random cases.
    Full,
    /// A tenth of the random cases, for a store whose arithmetic is already tested in full through another
    /// connection type.
    Short,
}

impl SuiteSize {
    /// Returns the number of random cases, given the full number.
    pub(crate) fn of(self, full: u64) -> u64 {
        match self {
            Self::Full => full,
            Self::Short => full.div_ceil(SHORT_DIVISOR),
        }
    }
}

/// Divisor of the number of random cases in a short suite.
const SHORT_DIVISOR: u64 = 10;

/// Generates a `#[test]` for each case of the suite.
///
/// `$fixture` is an expression that creates a [`Fixture`] and may use `.await`; `$block_on` runs a future to
/// completion.
#[macro_export]
macro_rules! conformance {
    ($fixture:expr, $block_on:path) => {
        $crate::conformance! { @ $fixture, $block_on,
            decisions: [
                bucket_refills_evenly_and_reports_exact_retry
                idle_key_never_admits_more_than_burst
                refused_take_debits_no_limit
                plan_over_several_subjects_is_all_or_nothing
                costs_on_one_key_are_merged
                cost_zero_is_a_peek
                cost_above_burst_never_passes
                block_never_passes
                retry_after_is_exact_to_the_microsecond
                unusual_rates_are_exact_over_a_full_window
                hostile_subjects_never_share_state
                empty_plan_passes
            ]
            shadow: [
                shadow_limit_never_refuses
                enforced_refusal_debits_no_shadow_limit
                shadow_group_is_all_or_nothing
            ]
            operations: [
                peek_takes_nothing
                refund_never_exceeds_capacity
                debit_never_goes_below_empty
                old_debit_counts_only_what_has_not_expired
                pause_refuses_until_it_ends
                shorter_pause_does_not_shorten_a_longer_one
                reset_clears_all_state
                stats_take_nothing
            ]
            permits: [
                release_frees_the_slots_of_a_permit
                slot_expires_at_exactly_its_ttl
                renewal_extends_by_the_original_ttl
                expired_slot_cannot_be_renewed
                permits_on_one_key_are_independent
                forged_permit_releases_nothing
                renewal_is_all_or_nothing
                slots_and_tokens_are_all_or_nothing
                refund_releases_no_slot
                permit_can_be_renewed_and_released_during_a_pause
                permit_holds_slots_of_passing_shadow_groups
                release_drops_expired_slots
                lowered_ttl_shortens_held_slots
            ]
            reservations: [
                a_settlement_gives_back_what_was_not_used
                excess_becomes_a_debt_of_at_most_one_limit
                a_debt_of_two_windows_is_at_most_one_limit
                only_the_first_settlement_counts
                what_has_left_its_window_is_not_given_back
                a_bucket_gives_back_no_refill
                a_refused_reservation_takes_nothing_and_is_unknown
                a_wrong_secret_or_tenant_is_unknown
                all_limits_of_a_plan_are_reserved_or_none
                slots_are_released_by_the_settlement_and_expire_with_the_ttl
                a_renewal_extends_the_reservation_and_its_slots
                a_cancelled_reservation_returns_every_unit
                an_adopted_reservation_is_settled_here
            ]
            listing: [
                lists_every_active_key_once
                prefix_filters_the_listing
                expired_keys_are_not_listed
            ]
            changes: [
                used_count_is_kept_when_the_limit_changes
                shorter_window_counts_only_takes_that_may_be_inside
                bucket_keeps_its_used_share
                full_bucket_stays_full_when_parameters_change
                changed_algorithm_starts_fresh
                alternating_parameters_never_admit_too_much
                alternating_parameters_never_refuse_forever
                clock_step_back_delays_at_most_one_refill
                repair_within_a_window_is_stored
                peek_stores_the_repair
            ]
            histories: [
                basic_histories_match_oracle
                operation_histories_match_oracle
                change_histories_match_oracle
                lease_histories_match_oracle
                reservation_histories_match_oracle
                golden_vectors_match
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

/// One millisecond in microseconds.
pub(crate) const MS: u64 = 1000;
/// One second in microseconds.
pub(crate) const S: u64 = 1_000_000;

/// Sets the clock of the fixture, in microseconds.
pub(crate) fn at(fixture: &impl Fixture, micros: u64) {
    fixture.set_now(Timestamp::from_micros(micros));
}

/// Returns a token bucket of `count` per `seconds`.
pub(crate) fn bucket(count: u64, seconds: u64) -> Limit {
    let quota = Quota::new(count, Duration::from_secs(seconds));
    Limit::token_bucket(quota).expect("valid limit")
}

/// Returns a limit of ten per minute.
pub(crate) fn ten_a_minute(kind: Kind) -> Limit {
    let spec = match kind {
        Kind::CalendarWindow => LimitSpec::calendar(10, crate::spec::Align::Minute, "UTC"),
        _ => LimitSpec::new(kind, 10, 60 * S),
    };
    spec.build().expect("valid limit")
}

/// Applies one operation to one limit.
pub(crate) async fn apply_one(
    fixture: &impl Fixture,
    subject: &str,
    limit: &Limit,
    operation: Operation,
) -> Answer {
    apply(fixture, subject, &[limit], operation).await[0]
}

/// Takes `cost` from one limit.
pub(crate) async fn take(
    fixture: &impl Fixture,
    subject: &str,
    limit: &Limit,
    cost: u64,
) -> Answer {
    apply_one(fixture, subject, limit, Operation::Take { cost }).await
}

/// Peeks at one limit.
pub(crate) async fn peek(
    fixture: &impl Fixture,
    subject: &str,
    limit: &Limit,
    cost: u64,
) -> Answer {
    apply_one(fixture, subject, limit, Operation::Peek { cost }).await
}

/// Takes 1 until refused and returns the number of admissions.
pub(crate) async fn drain(fixture: &impl Fixture, subject: &str, limit: &Limit) -> u64 {
    let mut passed = 0;
    while take(fixture, subject, limit, 1).await.is_allowed() {
        passed += 1;
    }
    passed
}
