//! Calls: many plans in one call of a program, and the answers given back to those who asked.

mod answer;
mod ask;
mod batch;
mod program;

pub(crate) use answer::{Answer, Figures};
pub(crate) use ask::{Ask, AskedTake, Verb, take_of, takes_of, takes_of_permit};
pub(crate) use batch::{Batch, MAX_TAKES};
pub(crate) use program::{Call, Naming};
