//! One plan, encoded and waiting to be sent in a batch.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::Instant;
use tollgate::{Key, Mode, Permit, PermitId, Plan, Timestamp};

use super::PlanReply;
use super::ticket::{IfDropped, ReplySender, Ticket};
use crate::failure::Failure;
use crate::keys::Keys;
use crate::limit_code::{self, Letter, LimitCode};
use crate::link::SendGate;

/// The operation on the takes of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Take,
    /// A take that holds concurrency slots under a permit.
    Hold(PermitId),
    Peek,
    Refund,
    Debit {
        age: Duration,
    },
    /// A take that leases more than its cost, for a node that spends it within `hold`.
    Lease {
        hold: Duration,
    },
    Pause {
        length: Duration,
    },
    Reset,
    Release(PermitId),
    Renew(PermitId),
    /// Whether the permit holds slots of all its keys.
    Holds(PermitId),
    /// An operation on a reservation, whose record is the first key. The key of the record has the arguments.
    OnReservation(ReservationVerb),
}

/// The operation on a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReservationVerb {
    /// Takes, and keeps a record.
    Reserve,
    Settle,
    /// Extends the reservation and its slots.
    Extend,
    /// Returns the record.
    Read,
    /// Keeps the record of a reservation that a node has granted.
    Adopt,
}

impl Verb {
    /// Whether it only takes or peeks, without a permit.
    pub(super) const fn is_plain(self) -> bool {
        matches!(self, Self::Take | Self::Peek)
    }

    /// Whether the reply is one integer per plan instead of three per take.
    pub(super) const fn replies_with_number(self) -> bool {
        matches!(
            self,
            Self::Pause { .. }
                | Self::Reset
                | Self::Release(_)
                | Self::Renew(_)
                | Self::Holds(_)
                | Self::OnReservation(ReservationVerb::Extend)
        )
    }

    /// Returns what becomes of an unsent plan if its caller goes away. A debit reports quota that is spent, whether
    /// the caller waits or not.
    const fn if_dropped(self) -> IfDropped {
        match self {
            // So is a settlement.
            Self::Debit { .. } | Self::OnReservation(ReservationVerb::Settle) => IfDropped::Send,
            _ => IfDropped::Cancel,
        }
    }
}

/// A take as a script call encodes it.
#[derive(Debug, Clone)]
pub(crate) struct EncodedTake {
    pub(super) key: Vec<u8>,
    pub(super) letter: Letter,
    pub(super) limit: LimitCode,
    pub(super) cost: u64,
    /// The amount to lease; 0 unless the verb leases.
    pub(super) wanted: u64,
    /// 0 for an enforced take, else the number of its shadow group within the plan.
    pub(super) group: u8,
    pub(super) role: KeyRole,
}

/// What the key of a take is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyRole {
    Counter,
    /// The record of a reservation, with the arguments of the verb.
    Record(Box<[u8]>),
    /// The sum of what settlements gave back to a bucket of the plan.
    GivenBack,
}

impl EncodedTake {
    /// Encodes the key of a reservation's record. `arguments` are those of the verb.
    pub(crate) fn of_record(key: Vec<u8>, arguments: Vec<u8>) -> Self {
        Self::of_entry(key, KeyRole::Record(arguments.into()))
    }

    /// Encodes the key of what settlements gave back to a bucket.
    pub(crate) fn of_given_back(key: Vec<u8>) -> Self {
        Self::of_entry(key, KeyRole::GivenBack)
    }

    fn of_entry(key: Vec<u8>, role: KeyRole) -> Self {
        let (letter, limit) = (Letter::Block, limit_code::encode_entry());
        Self { key, letter, limit, cost: 0, wanted: 0, group: 0, role }
    }

    pub(super) fn is_counter(&self) -> bool {
        self.role == KeyRole::Counter
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the take with this cost, and an amount to lease.
    pub(crate) fn leasing(self, cost: u64, wanted: u64) -> Self {
        Self { cost, wanted, ..self }
    }

    pub(crate) const fn letter(&self) -> Letter {
        self.letter
    }

    pub(crate) const fn group(&self) -> u8 {
        self.group
    }
}

/// One plan and the sender of its reply.
#[derive(Debug)]
pub(crate) struct QueuedPlan {
    pub(super) verb: Verb,
    pub(super) takes: SmallVec<[EncodedTake; 2]>,
    deadline: Instant,
    reply: ReplySender,
}

impl QueuedPlan {
    /// Returns the plan, and the ticket for its reply. An expired plan is not sent.
    pub(crate) fn new(
        verb: Verb,
        takes: SmallVec<[EncodedTake; 2]>,
        deadline: Instant,
    ) -> (Self, Ticket) {
        let (reply, ticket) = Ticket::new(verb.if_dropped());
        (Self { verb, takes, deadline, reply }, ticket)
    }

    pub(crate) fn takes(&self) -> &[EncodedTake] {
        &self.takes
    }

    pub(crate) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the caller no longer waits, and so an unsent plan is not sent. A debit is sent, unless its time is over.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.reply.is_cancelled()
    }

    /// Sets the gate of the call that will contain the plan. Returns false if the plan is cancelled.
    pub(crate) fn assign(&self, gate: &Arc<SendGate>) -> bool {
        self.reply.assign(gate)
    }

    /// The plan returns to the queue: its call was not sent, or has not run.
    pub(crate) fn unassign(&self) {
        self.reply.unassign();
    }

    /// Returns the plan's keys to its caller: no node has all of them, so no call can decide it.
    pub(crate) fn return_to_caller(self) {
        self.complete(Ok(PlanReply::OnSeveralNodes));
    }

    /// Returns the error of a server that could not run the plan yet.
    pub(crate) fn refusal(&self) -> Option<Failure> {
        self.reply.refusal()
    }

    pub(crate) fn fail(self, failure: Failure) {
        self.complete(Err(failure));
    }

    pub(super) fn complete(self, result: Result<PlanReply, Failure>) {
        self.reply.send(result);
    }
}

/// Encodes the takes of a plan. `now` is the estimated server time.
pub(crate) fn takes_of(plan: &Plan<'_>, keys: &Keys, now: Timestamp) -> SmallVec<[EncodedTake; 2]> {
    let mut groups: SmallVec<[Mode; 4]> = SmallVec::new();
    let mut takes = SmallVec::new();
    for take in plan.takes() {
        let mut encoded = take_of(&take.key(), take.cost(), keys, now);
        encoded.group = group_number(take.mode(), &mut groups);
        takes.push(encoded);
    }
    takes
}

/// Encodes an enforced take of one key.
pub(crate) fn take_of(key: &Key<'_>, cost: u64, keys: &Keys, now: Timestamp) -> EncodedTake {
    let (letter, limit) = limit_code::encode(key.limit(), now);
    let key = keys.counter(key.subject(), &key.limit().identity());
    EncodedTake { key, letter, limit, cost, wanted: 0, group: 0, role: KeyRole::Counter }
}

/// Encodes the keys of a permit as takes of cost 0.
pub(crate) fn takes_of_permit(permit: &Permit, keys: &Keys) -> SmallVec<[EncodedTake; 2]> {
    let takes = permit.held().iter().map(|held| EncodedTake {
        key: keys.counter(held.subject(), held.identity()),
        letter: Letter::Concurrency,
        limit: limit_code::encode_permit_limit(),
        cost: 0,
        wanted: 0,
        group: 0,
        role: KeyRole::Counter,
    });
    takes.collect()
}

/// Returns the number of a shadow group, by its first take. A plan has fewer takes than a byte has values.
fn group_number(mode: Mode, groups: &mut SmallVec<[Mode; 4]>) -> u8 {
    if mode == Mode::Enforce {
        return 0;
    }
    let index = groups.iter().position(|known| *known == mode).unwrap_or_else(|| {
        groups.push(mode);
        groups.len() - 1
    });
    u8::try_from(index + 1).unwrap_or(u8::MAX)
}
