//! What administrators change while the service runs: overrides, counters, the policy. All of it is audited.

mod audit;
mod book;
mod change;
mod clients;
mod embedded;
mod list;

pub(crate) use audit::audit;
pub(crate) use book::{Book, Changed, to_its_end};
pub(crate) use change::{Action, Author, Change};
pub(crate) use clients::{Client, reset, stats};
pub(crate) use list::{OverrideList, page};
