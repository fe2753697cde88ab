//! Integration tests of the service and its command line, with the real binary and real listeners.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code fails by panicking"
)]

mod auth_proxy;
mod client;
mod doc_blocks;
mod envoy_proxy;
mod fake_live_server;
mod grpc_client;
mod grpc_hostile_calls;
mod grpc_hostile_frames;
mod live_client;
mod metrics_text;
mod redis;
mod resp_client;
mod resp_hostile_inputs;
mod service;
mod tls_client;

mod admin;
mod admin_client;
mod admin_command;
mod bad_input;
mod batch;
mod bounds;
mod check;
mod command_failures;
mod command_line;
mod concurrency;
mod disconnects;
mod documentation;
mod envoy;
mod explain;
mod forward_auth;
mod front_end;
mod front_end_metrics;
mod grpc;
mod grpc_access;
mod grpc_hostile;
mod grpc_redis;
mod listings;
mod live;
mod man;
mod metrics;
mod mixed_front_ends;
mod notify;
mod openapi;
mod override_rules;
mod proxies;
mod random_bodies;
mod read_api;
mod redis_admin;
mod redis_client_view;
mod redis_copy;
mod redis_errors;
mod redis_events;
mod redis_late;
mod redis_leases;
mod redis_listings;
mod redis_live;
mod redis_live_nodes;
mod redis_lost;
mod redis_metrics;
mod redis_node_counters;
mod redis_nodes;
mod redis_overload;
mod redis_shadow;
mod redis_shared;
mod redis_start;
mod reload;
mod replay;
mod reservations;
mod reservations_bad_input;
mod reservations_command;
mod reservations_resp;
mod resp;
mod resp_access;
mod resp_clients;
mod resp_hostile;
mod resp_pipeline;
mod resp_programs;
mod resp_redis;
mod saved_state;
mod sessions;
mod settings;
mod shared_calls;
mod shutdown;
mod simulate;
mod simulate_oracle;
mod tls;
mod tokens;
mod top;
mod top_screen;
mod units;
