//! Locks and atomics of code that several threads run.
//!
//! With `--cfg tollgate_model` they are those of the model checker `shuttle`, with the same interface, so that
//! `scripts/models` runs this code in many orders of its steps. In other builds this module only renames.

#[cfg(tollgate_model)]
pub mod model;

#[cfg(tollgate_model)]
pub(crate) use model::{Mutex, MutexGuard, RwLock, RwLockReadGuard, atomic};
#[cfg(not(tollgate_model))]
pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};
#[cfg(not(tollgate_model))]
pub(crate) use std::sync::atomic;
