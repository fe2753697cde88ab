//! Overrides and the audit log: where they are stored, and how overrides become active on this node.

mod audit;
mod change;
mod change_event;
mod client;
mod follow;
mod local_storage;
mod override_store;
mod saved_override;

pub(crate) use audit::AuditRecord;
pub(crate) use change::{Action, Author, Change, OverrideEdit};
pub(crate) use client::{CLIENT, Client, TENANT};
pub(crate) use override_store::{EditOutcome, OverrideStore, run_to_completion};
pub(crate) use saved_override::SavedOverride;
