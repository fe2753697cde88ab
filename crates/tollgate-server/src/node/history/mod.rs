//! Counts per interval of the last five minutes, hour and day.
//!
//! Nodes that share a Redis add their counts there with their reports. Every node also keeps its own, which it serves
//! with the memory store and while Redis is lost.

mod interval;
mod local_history;
mod range;
mod shared_history;

pub(crate) use interval::IntervalCounts;
pub(crate) use local_history::LocalHistory;
pub(crate) use range::HistoryRange;
pub(crate) use shared_history::{outgoing_intervals, read_shared};
