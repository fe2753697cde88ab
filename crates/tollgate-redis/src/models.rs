//! Models of concurrency: callers of the coalescer with a modelled server, which `scripts/models` runs in many orders of
//! their steps. Everything between a caller and the bytes of its connection is the product's code.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "models are tests: a panic is the report of a failure"
)]

mod coalescer;
mod send_gate;
mod server;

use tollgate::models::{Model, model};

/// The models of this crate.
pub const ALL: &[Model] = &[
    model!(Sample coalescer::callers_get_their_own_replies),
    model!(Sample coalescer::withdrawn_plans_do_not_run_and_others_are_sent_again),
    model!(Sample coalescer::plans_run_once_if_the_server_loses_its_scripts),
    model!(Sample coalescer::plans_run_at_most_once_if_connections_are_lost),
    model!(Sample coalescer::dropped_callers_change_nothing_for_others),
    model!(Sample coalescer::waiting_plans_are_counted_once),
    model!(Sample coalescer::groups_get_their_own_replies),
    model!(All send_gate::call_is_sent_or_withdrawn),
    model!(All send_gate::call_that_returns_to_unsent_is_sent_or_withdrawn),
];
