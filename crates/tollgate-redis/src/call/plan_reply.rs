//! The reply of a script call, plan by plan.

use std::time::Duration;

use smallvec::SmallVec;
use tollgate::algorithm::Reply as StepReply;
use tollgate::reservation::TakeOutcome;
use tollgate::{Timestamp, Verdict};

use super::{ReservationVerb, Verb};
use crate::failure::Failure;
use crate::resp::Reply;

/// The reply to one plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PlanReply {
    /// One step reply per take.
    Figures(Figures),
    /// One number, for verbs without figures.
    Number(i64),
    /// The record of a reservation, which was there before or is settled. Nothing was changed.
    Record(Vec<u8>),
    /// There is no record.
    NoRecord,
    /// The calendar windows in the call do not contain the server's time. Nothing was taken.
    Stale,
    /// The keys have several slots, and no node has all of them. Nothing was taken.
    OnSeveralNodes,
}

/// The step replies of a plan's takes, and the server's time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) at: Timestamp,
    pub(crate) replies: SmallVec<[StepReply; 2]>,
    /// The leased amounts of the takes, all 0 if there is no lease; empty unless the verb leases.
    pub(crate) leased: SmallVec<[u64; 2]>,
    /// What a settlement did to each take; empty unless the verb settles.
    pub(crate) outcomes: Vec<TakeOutcome>,
}

impl Figures {
    /// Returns those of a plan without takes.
    pub(crate) fn none(at: Timestamp) -> Self {
        let replies = SmallVec::new();
        Self { at, replies, leased: SmallVec::new(), outcomes: Vec::new() }
    }
}

/// What a script returned for one plan.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PlanResult {
    Decided(Result<PlanReply, Failure>),
    /// The node does not have a named key. Nothing was taken.
    WrongNode,
    /// The server refuses keys of several slots in one call. Nothing was taken.
    CrossSlot,
}

/// The error string of a script for [`PlanReply::Stale`].
const STALE: &[u8] = b"STALE";

/// The error string of a script for [`PlanResult::WrongNode`].
const WRONG_NODE: &[u8] = b"WRONGNODE";

/// The error string of a script for [`PlanResult::CrossSlot`].
const CROSS_SLOT: &[u8] = b"CROSSSLOT";

/// Reads the reply of a call, plan by plan.
pub(super) struct ReplyReader<I> {
    at: Timestamp,
    rest: I,
}

impl<I: Iterator<Item = Reply>> ReplyReader<I> {
    /// Reads the server's time, the first element.
    pub(super) fn new(mut replies: I) -> Option<Self> {
        let at = match replies.next()? {
            Reply::Integer(micros) => Timestamp::from_micros(u64::try_from(micros).ok()?),
            _ => return None,
        };
        Some(Self { at, rest: replies })
    }

    pub(super) const fn at(&self) -> Timestamp {
        self.at
    }

    /// Reads the reply to the next plan. `None`: its end is unknown, so all later replies are lost too.
    pub(super) fn next(&mut self, verb: Verb, takes: usize) -> Option<PlanResult> {
        let first = match self.rest.next()? {
            Reply::Bulk(text) => return Some(text_reply(&text, verb)),
            Reply::Integer(first) => first,
            _ => return None,
        };
        self.figures(first, verb, takes).map(PlanResult::Decided)
    }

    fn figures(
        &mut self,
        first: i64,
        verb: Verb,
        takes: usize,
    ) -> Option<Result<PlanReply, Failure>> {
        if verb.replies_with_number() || takes == 0 {
            return Some(Ok(PlanReply::Number(first)));
        }
        let (mut replies, mut leased) = (SmallVec::new(), SmallVec::new());
        let mut outcomes = Vec::new();
        let mut wait = first;
        for remaining_takes in (0..takes).rev() {
            // Invalid figures are read to their end, so that the next plan gets its own reply.
            replies.extend(step_reply(wait, self.integer()?, self.integer()?));
            if matches!(verb, Verb::Lease { .. }) {
                leased.push(u64::try_from(self.integer()?).unwrap_or(0));
            }
            if verb == SETTLE {
                outcomes.push(TakeOutcome {
                    given_back: u64::try_from(self.integer()?).unwrap_or(0),
                    uncollected: u64::try_from(self.integer()?).unwrap_or(0),
                });
            }
            if remaining_takes > 0 {
                wait = self.integer()?;
            }
        }
        if replies.len() < takes {
            return Some(Err(Failure::unexpected()));
        }
        Some(Ok(PlanReply::Figures(Figures { at: self.at, replies, leased, outcomes })))
    }

    fn integer(&mut self) -> Option<i64> {
        match self.rest.next()? {
            Reply::Integer(number) => Some(number),
            _ => None,
        }
    }
}

const SETTLE: Verb = Verb::OnReservation(ReservationVerb::Settle);

/// Converts the text of a plan: a record, or an error.
fn text_reply(text: &[u8], verb: Verb) -> PlanResult {
    if matches!(verb, Verb::OnReservation(_)) {
        match text.split_first() {
            Some((b'=', record)) => {
                return PlanResult::Decided(Ok(PlanReply::Record(record.to_vec())));
            }
            Some((b'-', [])) => return PlanResult::Decided(Ok(PlanReply::NoRecord)),
            _ => {}
        }
    }
    error(text)
}

/// Converts the error string of a plan.
fn error(text: &[u8]) -> PlanResult {
    match text {
        WRONG_NODE => PlanResult::WrongNode,
        CROSS_SLOT => PlanResult::CrossSlot,
        STALE => PlanResult::Decided(Ok(PlanReply::Stale)),
        _ => PlanResult::Decided(Err(Failure::refused(text))),
    }
}

fn step_reply(wait: i64, remaining: i64, reset: i64) -> Option<StepReply> {
    let micros = |number: i64| u64::try_from(number).ok().map(Duration::from_micros);
    let verdict = match wait {
        -1 => Verdict::Never,
        0 => Verdict::Allow,
        wait => Verdict::Deny { retry_after: micros(wait)? },
    };
    // A negative amount is a debt.
    let debt = if remaining < 0 { remaining.unsigned_abs() } else { 0 };
    let reply = StepReply::new(verdict, u64::try_from(remaining).unwrap_or(0), micros(reset)?);
    Some(reply.with_debt(debt))
}
