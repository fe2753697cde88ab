//! An admin API for axum: overrides, usage and reset of single clients.
//!
//! [`AdminRouter`] serves endpoints for single clients, to be nested at any path, for example
//! `/admin/external`:
//!
//! | request | effect | status |
//! |---|---|---|
//! | `PUT /clients/{id}/limits` | sets the client's override for a rule | 200 |
//! | `GET /clients/{id}/limits` | returns the newest, and all as `overrides` | 200, 404 |
//! | `DELETE /clients/{id}/limits` | removes all, or one with `?rule=` | 204, 404 |
//! | `GET /clients/{id}/stats` | returns the client's usage | 200 |
//! | `POST /clients/{id}/reset` | resets the client's usage | 204 |
//!
//! Every request needs `Authorization: Bearer TOKEN`. A missing or wrong token returns 401; after 10 failures within a
//! minute a peer receives 429, even with the correct token. The body of PUT is
//! `{"limits":[{"limit":20,"window_ms":60000}],"rule":"…","reason":"…","author":"…","expires_at":"2030-01-31T18:00:00Z"}`.
//! If several rules can apply to the client, it must name one `rule` or set `"all_rules":true` (all of them except
//! blocks); otherwise the response is 400 and lists the `candidates`. Each limit replaces the rule's limit with the same
//! window or name; the others stay unless `"only":true`. `"fresh":true` also resets the client's usage of the rule. The
//! response shows the effect as `replaces` and `keeps`; with `?dry_run=true` nothing is changed. `?tenant=` selects a
//! tenant. Errors are `application/problem+json` and name the field of a rejected value.
//!
//! Failures are counted by TCP peer. Behind a reverse proxy all callers share one peer, so restrict the path there.

mod audit_entry;
mod auth;
mod handlers;
mod in_process;
mod override_body;
mod parameters;
mod problem;
mod router;
mod views;

pub use auth::{AdminToken, AdminTokenError};
pub use in_process::InProcessOverrides;
pub use router::AdminRouter;
