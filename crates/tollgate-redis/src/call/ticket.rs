//! The reply to a queued plan: a sender for the call, and a ticket for the caller.
//!
//! A caller whose time is over withdraws its plan. Either the plan is not sent then, or it may have run: the gate of
//! its call decides.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::PlanReply;
use crate::failure::Failure;
use crate::link::SendGate;
use crate::sync::Mutex;

type Outcome = Result<PlanReply, Failure>;

/// Sends the reply of one plan. If it is dropped without a reply, the plan fails.
#[derive(Debug)]
pub(super) struct ReplySender {
    /// `None` once the reply is sent.
    cell: Option<Arc<Mutex<Cell>>>,
}

/// The future of one plan's reply.
#[derive(Debug)]
pub(crate) struct Ticket {
    cell: Arc<Mutex<Cell>>,
    if_dropped: IfDropped,
}

/// What becomes of an unsent plan if its ticket is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfDropped {
    Send,
    Cancel,
}

/// What became of a plan whose caller withdrew it.
#[derive(Debug)]
pub(crate) enum Withdrawal {
    /// The reply had arrived.
    Replied(Outcome),
    /// It was not sent, or did not run, and will not be sent. With the error if a server could not run it yet.
    Unsent(Option<Failure>),
    /// It was sent, wholly or in part.
    Sent,
}

#[derive(Debug, Default)]
struct Cell {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
    /// The gate of the call that contains the plan.
    gate: Option<Arc<SendGate>>,
    /// The error of a server that could not run an earlier call with the plan.
    refusal: Option<Failure>,
    /// Whether the plan is not to be sent.
    is_cancelled: bool,
}

impl Ticket {
    pub(super) fn new(if_dropped: IfDropped) -> (ReplySender, Self) {
        let cell = Arc::new(Mutex::default());
        (ReplySender { cell: Some(Arc::clone(&cell)) }, Self { cell, if_dropped })
    }

    /// Withdraws the plan.
    pub(crate) fn withdraw(self) -> Withdrawal {
        let mut cell = self.cell.lock();
        if let Some(outcome) = cell.outcome.take() {
            return Withdrawal::Replied(outcome);
        }
        cell.is_cancelled = true;
        match &cell.gate {
            Some(gate) if !gate.withdraw() => Withdrawal::Sent,
            _ => Withdrawal::Unsent(cell.refusal()),
        }
    }
}

impl Future for Ticket {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut cell = self.cell.lock();
        if let Some(outcome) = cell.outcome.take() {
            return Poll::Ready(outcome);
        }
        if !cell.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            cell.waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.if_dropped == IfDropped::Cancel {
            self.cell.lock().is_cancelled = true;
        }
    }
}

impl Cell {
    /// Returns the error of a server that could not run the plan yet.
    fn refusal(&self) -> Option<Failure> {
        let of_call = self.gate.as_ref().and_then(|gate| gate.refusal());
        of_call.or_else(|| self.refusal.clone())
    }
}

impl ReplySender {
    /// Returns the error of a server that could not run the plan yet.
    pub(super) fn refusal(&self) -> Option<Failure> {
        self.cell.as_ref().and_then(|cell| cell.lock().refusal())
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cell.as_ref().is_none_or(|cell| cell.lock().is_cancelled)
    }

    /// Sets the gate of the plan's call. Returns false if the plan is cancelled.
    pub(super) fn assign(&self, gate: &Arc<SendGate>) -> bool {
        let Some(cell) = &self.cell else { return false };
        let mut cell = cell.lock();
        cell.gate = Some(Arc::clone(gate));
        !cell.is_cancelled
    }

    pub(super) fn unassign(&self) {
        if let Some(cell) = &self.cell {
            let mut cell = cell.lock();
            cell.refusal = cell.refusal();
            cell.gate = None;
        }
    }

    pub(super) fn send(mut self, outcome: Outcome) {
        self.deliver(outcome);
    }

    fn deliver(&mut self, outcome: Outcome) {
        let Some(cell) = self.cell.take() else { return };
        let mut cell = cell.lock();
        cell.outcome = Some(outcome);
        let waker = cell.waker.take();
        drop(cell);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for ReplySender {
    /// A plan without a reply was dropped with the runtime of the link.
    fn drop(&mut self) {
        if self.cell.is_some() {
            let reason = "the runtime of the connection has shut down";
            self.deliver(Err(Failure::Unreachable(reason.to_owned())));
        }
    }
}
