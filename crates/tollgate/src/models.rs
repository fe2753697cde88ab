//! Models of concurrency: short programs over the store and the leases, which `scripts/models` runs in many orders of
//! their steps.
//!
//! A panic, a deadlock and a thread that never ends are failures.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "models are tests: a panic is the report of a failure"
)]

mod leases;
mod memory;

pub use shuttle;

/// Locks of the model checker, for the crates that use this one.
pub use crate::sync::model as sync;

/// A short concurrent program with assertions.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// The claim, with its module.
    pub name: &'static str,
    /// Which orders of the steps are run.
    pub search: Search,
    /// The program.
    pub run: fn(),
}

/// Which orders of the steps of a model are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// As many as requested, selected at random.
    Sample,
    /// All.
    All,
}

/// Creates a [`Model`] that is named after its function.
#[macro_export]
#[doc(hidden)]
macro_rules! model {
    ($search:ident $module:ident::$name:ident) => {
        $crate::models::Model {
            name: concat!(stringify!($module), "::", stringify!($name)),
            search: $crate::models::Search::$search,
            run: $module::$name,
        }
    };
}

pub use model;

/// The models of this crate.
pub const ALL: &[Model] = &[
    model!(Sample memory::concurrent_takes_admit_exactly_the_limit),
    model!(Sample memory::takes_while_the_table_grows_admit_exactly_the_limit),
    model!(Sample memory::takes_while_keys_are_evicted_admit_exactly_the_limit),
    model!(Sample memory::takes_while_a_key_is_removed_admit_the_limit_once_per_reset),
    model!(Sample memory::count_of_keys_is_that_of_the_tables),
    model!(Sample memory::plans_over_several_shards_take_all_or_nothing),
    model!(Sample memory::slots_are_never_held_twice),
    model!(Sample memory::leases_and_takes_share_the_limit),
    model!(Sample leases::lease_is_spent_exactly_once),
    model!(Sample leases::decisions_with_renewals_admit_exactly_the_limit),
    model!(Sample leases::one_request_of_a_plan_is_in_flight),
    model!(Sample leases::refunds_return_what_was_spent),
    model!(Sample leases::nothing_is_spent_after_an_end),
    model!(Sample leases::nothing_is_spent_of_a_request_from_before_an_end),
];
