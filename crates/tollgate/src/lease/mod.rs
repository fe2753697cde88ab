//! Leases: quota that a node debits from a shared store in advance, so that it can decide requests without a call.
//!
//! A [`LeaseTable`] belongs to one store of one node. It decides when to request a lease and how large, spends what the
//! store granted, and ends leases. It does no input or output and reads no clock: the store sends its
//! [requests](LeaseRequest), and passes the time to every call.
//!
//! The rules that keep the fleet within a limit:
//!
//! - The store debits a lease before the node spends it. A token bucket is debited as if the tokens were taken at any
//!   time until the lease ends (`d' = max(d, refill) + n`), because quota that refills meanwhile would count twice.
//! - A store counts every take from a leased sliding window for one hold longer than the window.
//! - A lease ends at the latest one [hold](crate::Limit::lease_hold) after the node sent the request, and with its window.
//!   The first leases of a plan are shorter, so that a bucket that has just become busy gives up little.
//! - What is not spent is dropped. It is never returned to the store.
//!
//! When the store refuses a plan that is leased, the node refuses it for a quarter of the hold without a call.

mod amounts;
mod chunk;
mod demand;
mod epochs;
mod length;
mod plan_lease;
mod refusal;
mod request;
mod sizing;
mod stats;
mod table;
mod time;
mod wanted;

pub use length::spendable_for;
pub use refusal::CallEpoch;
pub use request::LeaseRequest;
pub use stats::LeaseStats;
pub use table::{LeaseOutcome, LeaseTable};
pub use time::LeaseTime;
pub use wanted::{LeaseReply, TakeGrant, WantedLease};
