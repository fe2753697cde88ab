//! The driver: the task of a link that connects, writes, reads and times out commands.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::LinkLimits;
use super::command_queue::{AfterTurn, CommandQueue, Pending};
use super::deadline_timer::DeadlineTimer;
use super::pipeline::{Pipeline, ReadUntil};
use crate::connection::{Connection, Route};
use crate::failure::Failure;

/// Number of polls from a large reply to the next read. Before the first poll, the callers of the reply run and queue plans;
/// before the second, these are put into a call, which the second sends. So Redis works on that call while this process
/// handles the next reply. Handled together, replies lead to calls that are sent together, and Redis waits for them.
const PAUSE: u8 = 3;

const RETIRED: &str = "its server is no longer the right one";

pub(super) struct Driver {
    queue: Arc<CommandQueue>,
    route: Arc<Route>,
    limits: LinkLimits,
    stage: Stage,
    timer: DeadlineTimer,
    /// Number of polls until the next read.
    pause: u8,
}

type Attempt = Pin<Box<dyn Future<Output = Result<Connection, Failure>> + Send>>;

enum Stage {
    /// There is no connection, and no command waits for one.
    Idle,
    Connecting(Attempt),
    Connected(Box<Pipeline>),
}

impl Driver {
    pub(super) fn new(queue: Arc<CommandQueue>, route: Arc<Route>, limits: LinkLimits) -> Self {
        Self { queue, route, limits, stage: Stage::Idle, timer: DeadlineTimer::default(), pause: 0 }
    }

    /// Does everything that is possible without waiting.
    fn turn(&mut self, context: &mut Context<'_>) {
        self.connect(context);
        self.exchange(context);
        // During a pause, replies that have arrived are not delivered yet.
        if self.pause == 0 {
            self.expire(context);
        }
    }

    fn connect(&mut self, context: &mut Context<'_>) {
        if matches!(self.stage, Stage::Idle) && self.queue.needs_connection() {
            let (route, timeout) = (Arc::clone(&self.route), self.limits.connect_timeout);
            let attempt = async move { route.connect(timeout).await };
            self.stage = Stage::Connecting(Box::pin(attempt));
        }
        let Stage::Connecting(attempt) = &mut self.stage else { return };
        match attempt.as_mut().poll(context) {
            Poll::Pending => {}
            Poll::Ready(Ok(connection)) => {
                self.stage = Stage::Connected(Box::new(Pipeline::new(connection)));
                self.queue.connected();
            }
            Poll::Ready(Err(failure)) => {
                self.stage = Stage::Idle;
                self.queue.connect_failed(&failure);
            }
        }
    }

    /// Reads, then writes: receivers of replies may send more commands, and a connection that the server has
    /// closed is detected before a command is lost on it.
    fn exchange(&mut self, context: &mut Context<'_>) {
        let outcome = self.receive(context).and_then(|()| self.transmit(context));
        if let Err(reason) = outcome {
            self.disconnect(&reason);
        }
    }

    fn receive(&mut self, context: &mut Context<'_>) -> Result<(), String> {
        let Stage::Connected(pipeline) = &mut self.stage else { return Ok(()) };
        if self.pause == 0 && pipeline.read(context, &self.queue)? == ReadUntil::LargeReply {
            self.pause = PAUSE;
            context.waker().wake_by_ref();
        }
        Ok(())
    }

    fn transmit(&mut self, context: &mut Context<'_>) -> Result<(), String> {
        let Stage::Connected(pipeline) = &mut self.stage else { return Ok(()) };
        if self.queue.is_retiring() {
            // Waits for the replies in flight; unsent commands go to the next server.
            return if pipeline.is_idle() { Err(RETIRED.to_owned()) } else { Ok(()) };
        }
        // An expired command must not spend quota: its caller no longer waits.
        fail_expired(&self.queue, |pending| {
            let queued_at = pending.deadline.checked_sub(self.limits.reply_timeout);
            match queued_at.is_some_and(|at| at < pipeline.opened_at()) {
                true => unreachable(&self.route, self.limits),
                // This process was too busy to send it.
                false => Failure::Overloaded,
            }
        });
        for opener in pipeline.take(&self.queue) {
            // The caller may no longer wait.
            let _ = opener.send(Ok(pipeline.info()));
        }
        let outcome = pipeline.write(context);
        for pending in pipeline.take_withdrawn() {
            self.queue.finish(pending.on_reply, Err(Failure::Withdrawn));
        }
        outcome
    }

    /// Fails expired commands, and sets the timer for the next deadline.
    fn expire(&mut self, context: &mut Context<'_>) {
        while let Some(deadline) = self.oldest_deadline() {
            if !self.timer.has_passed(deadline, context) {
                return;
            }
            if let Stage::Connected(pipeline) = &self.stage
                && pipeline.oldest_deadline().is_some()
            {
                // Replies come in order: after a missing one, none will come.
                self.disconnect("an earlier command on it got no reply in time");
            }
            fail_expired(&self.queue, |_| unreachable(&self.route, self.limits));
        }
    }

    fn oldest_deadline(&self) -> Option<Instant> {
        let in_pipeline = match &self.stage {
            Stage::Connected(pipeline) => pipeline.oldest_deadline(),
            Stage::Idle | Stage::Connecting(_) => None,
        };
        in_pipeline.or_else(|| self.queue.oldest_deadline())
    }

    /// Closes the connection, if there is one. Unsent commands return to the queue.
    fn disconnect(&mut self, reason: &str) {
        let Stage::Connected(pipeline) = mem::replace(&mut self.stage, Stage::Idle) else { return };
        self.queue.disconnected();
        let (in_flight, unsent) = pipeline.close();
        self.queue.put_back(unsent);
        let now = Instant::now();
        for pending in in_flight {
            let failure = match pending.deadline <= now {
                true => Failure::Timeout,
                false => Failure::Lost(reason.to_owned()),
            };
            self.queue.finish(pending.on_reply, Err(failure));
        }
    }
}

/// Fails queued commands whose deadline has passed.
fn fail_expired(queue: &CommandQueue, failure: impl Fn(&Pending) -> Failure) {
    for pending in queue.remove_expired(Instant::now()) {
        let failure = failure(&pending);
        queue.finish(pending.on_reply, Err(failure));
    }
}

fn unreachable(route: &Route, limits: LinkLimits) -> Failure {
    let timeout = limits.reply_timeout;
    Failure::Unreachable(format!("Redis at {route} cannot be reached within {timeout:?}"))
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.queue.driver_awake();
        this.pause = this.pause.saturating_sub(1);
        if this.pause > 0 {
            context.waker().wake_by_ref();
        }
        loop {
            this.turn(context);
            let can_take = match this.stage {
                Stage::Idle => true,
                Stage::Connecting(_) => false,
                Stage::Connected(_) => !this.queue.is_retiring(),
            };
            match this.queue.after_turn(context.waker(), can_take) {
                AfterTurn::Again => {}
                AfterTurn::Sleep => return Poll::Pending,
                AfterTurn::Stop => return Poll::Ready(()),
            }
        }
    }
}

/// Fails all waiting commands when the runtime shuts down or the task panics.
impl Drop for Driver {
    fn drop(&mut self) {
        const REASON: &str = "the runtime of the connection has shut down";
        self.disconnect(REASON);
        self.queue.driver_stopped(&Failure::Unreachable(REASON.to_owned()));
    }
}
