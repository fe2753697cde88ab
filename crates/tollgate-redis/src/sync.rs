//! Locks, atomics, timers and tasks of code that several threads run.
//!
//! With `--cfg tollgate_model` they are those of the model checker, with the same interface, so that `scripts/models` runs
//! this code in many orders of its steps. In other builds this module only renames.

#[cfg(tollgate_model)]
mod model;

#[cfg(tollgate_model)]
pub(crate) use model::{
    Handle, Mutex, MutexGuard, Sleep, atomic, sleep_until, thread_local, timeout_at,
};
#[cfg(not(tollgate_model))]
pub(crate) use parking_lot::{Mutex, MutexGuard};
#[cfg(not(tollgate_model))]
pub(crate) use std::{sync::atomic, thread_local};
#[cfg(not(tollgate_model))]
pub(crate) use tokio::{
    runtime::Handle,
    time::{Sleep, sleep_until, timeout_at},
};
