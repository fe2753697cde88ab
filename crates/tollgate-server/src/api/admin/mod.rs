//! Admin operations: overrides, stats and reset of clients, policy reload. Every change is audited.

mod audit;
mod changes;
mod clients;
mod list;
mod reset;

#[cfg(test)]
pub(crate) use audit::AuditPage;
#[cfg(test)]
pub(crate) use changes::ReloadReply;
pub(crate) use changes::{ChangeRequest, Execution};
#[cfg(test)]
pub(crate) use clients::Stats;
pub(super) use clients::{Counters, Keyed, ServerPolicy, mode};
#[cfg(test)]
pub(crate) use list::OverrideList;
pub(super) use list::page;
pub(crate) use reset::follow_resets;
