//! Admin API: overrides, stats and reset of clients, policy reload. Every change is audited.

mod audit;
mod change;
mod clients;
mod list;
mod local_storage;
mod override_store;

pub(crate) use audit::audit;
pub(crate) use change::{Action, Author, Change, ChangeOutcome};
pub(crate) use clients::{Client, reset, stats};
pub(crate) use list::{OverrideList, page};
pub(crate) use override_store::{OverrideStore, run_to_completion};
