//! Requests to the store, and their answers.

use std::time::Duration;

use tollgate::algorithm::Reply;
use tollgate::lease::{LeaseReply, LeaseRequest, WantedLease};
use tollgate::{StoreErrorKind, Timestamp};

use super::scenario::StoreModel;

/// What a node wants from the store.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Take,
    Peek,
    Lease(WantedLease),
    Debit(Duration),
    /// A take from the key of probes.
    Probe,
    /// A node report.
    Report,
}

/// An operation on a key.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) key: u32,
    pub(super) operation: Operation,
}

/// Who waits for the answer to a request.
#[derive(Debug)]
pub(super) enum Waiter {
    /// A task, by its ticket.
    Task(u64),
    /// The lease table, for a lease that is requested in the background.
    Lease(LeaseRequest),
    None,
}

/// The answer to a request.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    Replied(Timestamp, Reply),
    Leased(LeaseReply),
    Failed(StoreErrorKind),
}

impl Request {
    /// Returns the server of the key.
    pub(super) fn server(&self, servers: usize) -> usize {
        self.key.wrapping_mul(0x9E37_79B1) as usize % servers
    }

    /// Returns its CPU time in the server, in nanoseconds.
    pub(super) fn cost(&self, store: &StoreModel) -> u64 {
        match self.operation {
            Operation::Report => store.report_ns,
            _ => store.plan_ns,
        }
    }
}
