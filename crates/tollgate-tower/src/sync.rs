//! Locks, atomics, timers and tasks of code that several threads run.
//!
//! With `--cfg tollgate_model` they are those of the model checker, with the same interface, so that `scripts/models` runs
//! this code in many orders of its steps. In other builds this module only renames.

#[cfg(not(tollgate_model))]
pub(crate) use parking_lot::Mutex;
#[cfg(not(tollgate_model))]
pub(crate) use std::sync::atomic;
#[cfg(not(tollgate_model))]
pub(crate) use tokio::{runtime::Handle, time::timeout_at};
#[cfg(tollgate_model)]
pub(crate) use tollgate::models::sync::{Handle, Mutex, atomic, timeout_at};
