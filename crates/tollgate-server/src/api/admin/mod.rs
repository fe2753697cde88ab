//! What administrators change while the service runs: overrides, counters, the policy. All of it is audited.

mod audit;
mod change;
mod clients;
mod embedded;
mod list;
mod override_store;

pub(crate) use audit::audit;
pub(crate) use change::{Action, Author, Change};
pub(crate) use clients::{Client, reset, stats};
pub(crate) use list::{OverrideList, page};
pub(crate) use override_store::{Changed, OverrideStore, to_its_end};
