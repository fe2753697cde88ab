//! Models of concurrency: the queue of an outbound limiter, which `scripts/models` runs in many orders of its steps.

#![expect(clippy::unwrap_used, reason = "models are tests: a panic is the report of a failure")]

mod outbound;

use tollgate::models::{Model, model};

/// The models of this crate.
pub const ALL: &[Model] = &[
    model!(Sample outbound::waiting_callers_are_admitted_once_in_order),
    model!(Sample outbound::reset_wakes_the_first_caller),
    model!(Sample outbound::new_callers_do_not_overtake),
    model!(Sample outbound::dropped_caller_passes_its_place_on),
    model!(Sample outbound::callers_that_time_out_take_nothing),
    model!(Sample outbound::callers_without_patience_do_not_overtake),
];
