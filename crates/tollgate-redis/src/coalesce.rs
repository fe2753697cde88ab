//! Coalescing: what is asked while a call is in flight leaves together in the next one.
//!
//! An idle store sends a plan at once. Nobody waits for company.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::call::{Ask, Batch, By, Invocation, MAX_TAKES};
use crate::failure::Failure;
use crate::link::Link;
use crate::resp::Reply;
use crate::script::Scripts;
use crate::time::Time;

/// Calls in flight at once: while Redis works at one, the next is on its way to it.
const CALLS_IN_FLIGHT: usize = 2;

/// Puts plans together and sends them.
#[derive(Debug)]
pub(crate) struct Coalescer {
    link: Link,
    scripts: Scripts,
    time: Time,
    channel: String,
    max_waiting: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Ask>,
    in_flight: usize,
}

impl Coalescer {
    pub(crate) fn new(link: Link, time: Time, channel: String, max_waiting: usize) -> Self {
        let scripts = Scripts::new(time.source());
        Self { link, scripts, time, channel, max_waiting, state: Mutex::default() }
    }

    pub(crate) const fn time(&self) -> &Time {
        &self.time
    }

    pub(crate) const fn link(&self) -> &Link {
        &self.link
    }

    pub(crate) const fn scripts(&self) -> &Scripts {
        &self.scripts
    }

    /// Sends the plan at once, or with the next call.
    pub(crate) fn submit(self: &Arc<Self>, ask: Ask) {
        let asks = {
            let mut state = self.state.lock();
            if state.waiting.len() >= self.max_waiting {
                drop(state);
                ask.fail(Failure::Overloaded);
                return;
            }
            state.waiting.push(ask);
            if state.in_flight >= CALLS_IN_FLIGHT {
                return;
            }
            state.in_flight += 1;
            state.next_call()
        };
        self.send(asks);
    }

    /// The place of a call that has ended goes to the next, if anyone waits.
    fn go_on(self: Arc<Self>) {
        let asks = {
            let mut state = self.state.lock();
            let asks = state.next_call();
            if asks.is_empty() {
                state.in_flight -= 1;
                return;
            }
            asks
        };
        self.send(asks);
    }

    fn send(self: &Arc<Self>, asks: Vec<Ask>) {
        self.call(Batch::of(asks), By::Hash);
    }

    fn call(self: &Arc<Self>, batch: Batch, by: By) {
        let script = batch.script(&self.scripts);
        let command = batch.command(&Invocation {
            script,
            by,
            channel: &self.channel,
            now: self.time.told(),
        });
        let this = Arc::clone(self);
        self.link.send(command, Box::new(move |result| this.answered(batch, by, result)));
    }

    fn answered(self: Arc<Self>, batch: Batch, by: By, result: Result<Reply, Failure>) {
        match result {
            // The server has lost the script, so nothing has run: the text brings it back.
            Err(failure) if failure.is_unknown_script() && by == By::Hash => {
                return self.call(batch, By::Text);
            }
            Err(failure) => batch.fail(&failure),
            Ok(reply) => {
                if let Some(now) = batch.answer(reply) {
                    self.time.learn(now);
                }
            }
        }
        self.go_on();
    }
}

impl State {
    /// As many plans as fit into one call, without those that nobody waits for any more.
    fn next_call(&mut self) -> Vec<Ask> {
        self.waiting.retain(|ask| !ask.is_abandoned());
        let mut takes = 0;
        let fits = |ask: &Ask| {
            takes += ask.takes();
            takes <= MAX_TAKES
        };
        let count = self.waiting.iter().map(fits).take_while(|fits| *fits).count().max(1);
        let rest = self.waiting.split_off(count.min(self.waiting.len()));
        std::mem::replace(&mut self.waiting, rest)
    }
}
