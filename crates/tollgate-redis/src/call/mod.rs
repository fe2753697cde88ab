//! Calls: many plans in one script call, and the answers given back to those who asked.

mod answer;
mod ask;
mod batch;

pub(crate) use answer::{Answer, Figures};
pub(crate) use ask::{Ask, AskedTake, Verb, take_of, takes_of, takes_of_lease};
pub(crate) use batch::{Batch, By, Invocation, MAX_TAKES};
