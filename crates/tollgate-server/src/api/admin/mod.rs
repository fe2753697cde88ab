//! Admin operations: overrides, stats and reset of clients, policy reload. Every change is audited.

mod audit;
mod changes;
mod clients;
mod list;

pub(crate) use changes::ChangeRequest;
pub(super) use list::page;
