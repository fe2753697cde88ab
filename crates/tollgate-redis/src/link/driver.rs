//! The driver: the one task that connects, writes, reads, and gives up.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::Patience;
use super::alarm::Alarm;
use super::shared::{Rest, Shared};
use super::wire::Wire;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::route::Route;

const LEFT: &str = "its server is not the right one any more";

pub(super) struct Driver {
    shared: Arc<Shared>,
    route: Arc<Route>,
    patience: Patience,
    stage: Stage,
    alarm: Alarm,
}

type Attempt = Pin<Box<dyn Future<Output = Result<Connection, Failure>> + Send>>;

enum Stage {
    /// There is no connection, and nobody waits for one.
    Idle,
    Connecting(Attempt),
    Live(Box<Wire>),
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>, route: Arc<Route>, patience: Patience) -> Self {
        Self { shared, route, patience, stage: Stage::Idle, alarm: Alarm::default() }
    }

    /// Does what can be done now.
    fn turn(&mut self, context: &mut Context<'_>) {
        self.connect(context);
        self.exchange(context);
        self.expire(context);
    }

    fn connect(&mut self, context: &mut Context<'_>) {
        if matches!(self.stage, Stage::Idle) && self.shared.is_wanted() {
            let (route, patience) = (Arc::clone(&self.route), self.patience.connect);
            let attempt = async move { route.connect(patience).await };
            self.stage = Stage::Connecting(Box::pin(attempt));
        }
        let Stage::Connecting(attempt) = &mut self.stage else { return };
        match attempt.as_mut().poll(context) {
            Poll::Pending => {}
            Poll::Ready(Ok(connection)) => {
                self.stage = Stage::Live(Box::new(Wire::new(connection)));
                self.shared.accept();
            }
            Poll::Ready(Err(failure)) => {
                self.stage = Stage::Idle;
                self.shared.refuse(&failure);
            }
        }
    }

    /// Reads, then writes: those who get a reply may send more at once, and a connection that the
    /// server has closed is noticed before anything is lost on it.
    fn exchange(&mut self, context: &mut Context<'_>) {
        let outcome = self.receive(context).and_then(|()| self.transmit(context));
        if let Err(reason) = outcome {
            self.lose(&reason);
        }
    }

    fn receive(&mut self, context: &mut Context<'_>) -> Result<(), String> {
        let Stage::Live(wire) = &mut self.stage else { return Ok(()) };
        wire.read(context, &self.shared)
    }

    fn transmit(&mut self, context: &mut Context<'_>) -> Result<(), String> {
        let Stage::Live(wire) = &mut self.stage else { return Ok(()) };
        if self.shared.is_leaving() {
            // What is under way is answered first; what has not left goes to the next server.
            return if wire.is_idle() { Err(LEFT.to_owned()) } else { Ok(()) };
        }
        // What is late already must not be spent on nobody.
        give_up_queued(&self.shared, "this process was too busy to ask Redis in time");
        for opened in wire.take(&self.shared) {
            opened(Ok(wire.info()));
        }
        wire.write(context)
    }

    /// Gives up what has waited for too long, and wakes up for what will have.
    fn expire(&mut self, context: &mut Context<'_>) {
        while let Some(oldest) = self.oldest() {
            if !self.alarm.has_come(oldest, context) {
                return;
            }
            if let Stage::Live(wire) = &self.stage
                && wire.oldest().is_some()
            {
                // Replies come in order: behind one that does not come, none does.
                self.lose("it was given up as an earlier command had no answer in time");
            }
            let (route, reply) = (&self.route, self.patience.reply);
            give_up_queued(
                &self.shared,
                &format!("Redis at {route} cannot be reached within {reply:?}"),
            );
        }
    }

    fn oldest(&self) -> Option<Instant> {
        let on_wire = match &self.stage {
            Stage::Live(wire) => wire.oldest(),
            Stage::Idle | Stage::Connecting(_) => None,
        };
        on_wire.or_else(|| self.shared.oldest())
    }

    /// Closes the connection, if there is one. What was not sent waits for the next.
    fn lose(&mut self, reason: &str) {
        let Stage::Live(wire) = mem::replace(&mut self.stage, Stage::Idle) else { return };
        let (in_flight, unsent) = wire.close();
        self.shared.put_back(unsent);
        let now = Instant::now();
        for pending in in_flight {
            let failure = match pending.deadline <= now {
                true => Failure::Timeout,
                false => Failure::Lost(reason.to_owned()),
            };
            self.shared.finish(pending.then, Err(failure));
        }
    }
}

/// Tells those who have waited in the queue for too long.
fn give_up_queued(shared: &Shared, why: &str) {
    for pending in shared.expired(Instant::now()) {
        shared.finish(pending.then, Err(Failure::Unreachable(why.to_owned())));
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.shared.awake();
        loop {
            this.turn(context);
            let can_take = match this.stage {
                Stage::Idle => true,
                Stage::Connecting(_) => false,
                Stage::Live(_) => !this.shared.is_leaving(),
            };
            match this.shared.rest(context.waker(), can_take) {
                Rest::Again => {}
                Rest::Sleep => return Poll::Pending,
                Rest::End => return Poll::Ready(()),
            }
        }
    }
}

/// Also when the runtime ends, or a panic ends the task: everybody who waits is told.
impl Drop for Driver {
    fn drop(&mut self) {
        const REASON: &str = "the runtime that drove the connection has ended";
        self.lose(REASON);
        self.shared.leave(&Failure::Unreachable(REASON.to_owned()));
    }
}
