//! What operators ask of a node: what is configured, counted and refused, and how it fares.

mod chunks;
mod counters;
mod limits;
mod nodes;
mod scan;
mod status;

pub(crate) use counters::{blocks, counters};
pub(crate) use limits::limits;
pub(crate) use nodes::nodes;
pub(crate) use scan::Wanted;
pub(crate) use status::{status, warning};
