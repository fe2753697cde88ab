//! Read API for operators: limits, counters, blocks, nodes and status.

mod chunks;
mod counters;
mod limits;
mod nodes;
mod scan;
mod status;

pub(crate) use counters::{blocks, counters};
pub(crate) use limits::limits;
pub(crate) use nodes::nodes;
pub(crate) use scan::PageRequest;
pub(crate) use status::{status, warning};
