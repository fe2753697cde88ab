//! Script calls: the encoding of many plans into one call, and the decoding of its reply.

mod batch;
#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod named_keys_tests;
mod plan_reply;
mod program;
#[cfg(test)]
mod program_choice_tests;
mod queued_plan;
mod ticket;

pub(crate) use batch::{Batch, KeyForm, MAX_TAKES, Outcome};
pub(crate) use plan_reply::{Figures, PlanReply};
pub(crate) use program::{Call, Invocation};
pub(crate) use queued_plan::{
    EncodedTake, QueuedPlan, ReservationVerb, Verb, take_of, takes_of, takes_of_permit,
};
#[cfg(test)]
pub(crate) use ticket::Ticket;
pub(crate) use ticket::Withdrawal;
