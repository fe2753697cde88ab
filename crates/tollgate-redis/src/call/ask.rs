//! One plan, made ready to be sent with others.

use std::time::Duration;

use smallvec::SmallVec;
use tokio::sync::oneshot;
use tollgate::{Key, Mode, Permit, PermitId, Plan, Timestamp};

use super::Answer;
use crate::failure::Failure;
use crate::keys::Keys;
use crate::limit_code::{self, Letter, LimitCode};

/// What is done with the takes of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Take,
    Hold(PermitId),
    Peek,
    Refund,
    Debit {
        age: Duration,
    },
    Pause {
        length: Duration,
    },
    Reset,
    Release(PermitId),
    Renew(PermitId),
    /// Whether the permit has slots of all its keys.
    Holds(PermitId),
}

impl Verb {
    /// Whether it only takes or peeks, without a permit.
    pub(super) const fn is_plain(self) -> bool {
        matches!(self, Self::Take | Self::Peek)
    }

    /// Whether it is answered by one integer for the plan, and not by three for each take.
    pub(super) const fn has_one_answer(self) -> bool {
        matches!(
            self,
            Self::Pause { .. } | Self::Reset | Self::Release(_) | Self::Renew(_) | Self::Holds(_)
        )
    }
}

/// What is asked of one counter.
#[derive(Debug, Clone)]
pub(crate) struct AskedTake {
    pub(super) key: Vec<u8>,
    pub(super) letter: Letter,
    pub(super) limit: LimitCode,
    pub(super) cost: u64,
    /// 0 for an enforced take, else the number of its shadow group within the plan.
    pub(super) group: u8,
}

impl AskedTake {
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(crate) const fn letter(&self) -> Letter {
        self.letter
    }

    pub(crate) const fn group(&self) -> u8 {
        self.group
    }
}

/// One plan and whoever waits for its answer.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(super) verb: Verb,
    pub(super) takes: SmallVec<[AskedTake; 2]>,
    pub(super) answer: oneshot::Sender<Result<Answer, Failure>>,
}

impl Ask {
    pub(crate) fn new(
        verb: Verb,
        takes: SmallVec<[AskedTake; 2]>,
    ) -> (Self, oneshot::Receiver<Result<Answer, Failure>>) {
        let (answer, receiver) = oneshot::channel();
        (Self { verb, takes, answer }, receiver)
    }

    pub(crate) fn takes(&self) -> usize {
        self.takes.len()
    }

    /// Whether nobody waits any more. What was not sent by then need not be.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }

    pub(crate) fn fail(self, failure: Failure) {
        // Whoever asked may have given up waiting.
        let _ = self.answer.send(Err(failure));
    }

    pub(super) fn answer(self, answer: Answer) {
        let _ = self.answer.send(Ok(answer));
    }
}

/// The takes of a plan as a call carries them.
pub(crate) fn takes_of(plan: &Plan<'_>, keys: &Keys, now: Timestamp) -> SmallVec<[AskedTake; 2]> {
    let mut groups: SmallVec<[Mode; 4]> = SmallVec::new();
    let mut takes = SmallVec::new();
    for take in plan.takes() {
        let mut asked = take_of(&take.key(), take.cost(), keys, now);
        asked.group = number_of(take.mode(), &mut groups);
        takes.push(asked);
    }
    takes
}

/// A take of one counter.
pub(crate) fn take_of(key: &Key<'_>, cost: u64, keys: &Keys, now: Timestamp) -> AskedTake {
    let (letter, limit) = limit_code::encode(key.limit(), now);
    let key = keys.counter(key.subject(), &key.limit().identity());
    AskedTake { key, letter, limit, cost, group: 0 }
}

/// The keys of a permit.
pub(crate) fn takes_of_permit(permit: &Permit, keys: &Keys) -> SmallVec<[AskedTake; 2]> {
    let held = permit.held().iter().map(|held| AskedTake {
        key: keys.counter(held.subject(), held.identity()),
        letter: Letter::Concurrency,
        limit: limit_code::encode_slots_of_any_limit(),
        cost: 0,
        group: 0,
    });
    held.collect()
}

/// Groups are numbered by their first take; a plan has fewer takes than a byte has numbers.
fn number_of(mode: Mode, groups: &mut SmallVec<[Mode; 4]>) -> u8 {
    if mode == Mode::Enforce {
        return 0;
    }
    let place = groups.iter().position(|other| *other == mode).unwrap_or_else(|| {
        groups.push(mode);
        groups.len() - 1
    });
    u8::try_from(place + 1).unwrap_or(u8::MAX)
}
