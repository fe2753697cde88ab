//! What a call is answered with.

use std::time::Duration;

use smallvec::SmallVec;
use tollgate::algorithm::Reply as StepReply;
use tollgate::{Timestamp, Verdict};

use super::Verb;
use crate::failure::Failure;
use crate::resp::Reply;

/// The answer to one plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// One reply a take.
    Figures(Figures),
    /// One number, for verbs that have no figures.
    Number(i64),
    /// The windows of the calendar that were sent are not around the server's time. Nothing was taken.
    Stale,
}

/// The replies to a plan's takes, at the server's time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) at: Timestamp,
    pub(crate) replies: SmallVec<[StepReply; 2]>,
}

/// What a script says of a plan whose calendar windows are of another time.
const STALE: &[u8] = b"STALE";

/// Reads the answers of a whole call, one plan after the other.
pub(super) struct Answers<I> {
    at: Timestamp,
    rest: I,
}

impl<I: Iterator<Item = Reply>> Answers<I> {
    /// Begins with the time.
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

    /// The answer to the next plan; none if it cannot be told where that ends, nor then what follows it.
    pub(super) fn next(&mut self, verb: Verb, takes: usize) -> Option<Result<Answer, Failure>> {
        let first = match self.rest.next()? {
            Reply::Bulk(text) if *text == *STALE => return Some(Ok(Answer::Stale)),
            Reply::Bulk(text) => return Some(Err(Failure::refused(&text))),
            Reply::Integer(first) => first,
            _ => return None,
        };
        if verb.has_one_answer() {
            return Some(Ok(Answer::Number(first)));
        }
        let mut replies = SmallVec::new();
        let mut wait = first;
        for left in (0..takes).rev() {
            // Nonsense is read to its end, so that the next plan gets its own answer.
            replies.extend(reply(wait, self.integer()?, self.integer()?));
            if left > 0 {
                wait = self.integer()?;
            }
        }
        if replies.len() < takes {
            return Some(Err(Failure::unexpected()));
        }
        Some(Ok(Answer::Figures(Figures { at: self.at, replies })))
    }

    fn integer(&mut self) -> Option<i64> {
        match self.rest.next()? {
            Reply::Integer(number) => Some(number),
            _ => None,
        }
    }
}

fn reply(wait: i64, remaining: i64, reset: i64) -> Option<StepReply> {
    let micros = |number: i64| u64::try_from(number).ok().map(Duration::from_micros);
    let verdict = match wait {
        -1 => Verdict::Never,
        0 => Verdict::Allow,
        wait => Verdict::Deny { retry_after: micros(wait)? },
    };
    Some(StepReply::new(verdict, u64::try_from(remaining).ok()?, micros(reset)?))
}
