//! Integration tests of the Redis store on real servers, one file per guarantee.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panicking, and their helpers too"
)]

mod acl;
mod admission_log;
mod bucket_expiry;
mod bucket_plans;
mod cluster_down;
mod cluster_fixture;
mod clusters;
mod conformance;
mod cross_node_errors;
mod cut_connections;
mod directory;
mod directory_nodes;
mod dropped_recovery;
mod event_log;
mod expiry;
mod first_call;
mod fixture;
mod fleet_prediction;
mod foreign_keys;
mod lease_ends;
mod lease_processes;
mod leases;
mod memory_equivalence;
mod memory_full;
mod node_batching;
mod node_report_cost;
mod node_reports;
mod opening;
mod overrides;
mod processes;
mod random_events;
mod random_world;
mod read_only;
mod refusal_cache;
mod reservation_equivalence;
mod reservation_processes;
mod reservations;
mod scripts_lost;
mod secrets;
mod sentinels;
mod slot_work;
mod split_brain;
mod tally;
mod timeouts;
mod units;
mod url_schemes;
