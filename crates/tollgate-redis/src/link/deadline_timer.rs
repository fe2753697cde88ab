//! One timer for the deadlines of all commands.
//!
//! Deadlines expire in the order of the commands. The timer is set to the oldest deadline if it is not set.
//! When that command gets its reply, the timer is left alone: it fires early and is set again. So it is set
//! rarely, not once per command.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;

use tokio::time::Instant;

use crate::sync::{Sleep, sleep_until};

#[derive(Debug, Default)]
pub(super) struct DeadlineTimer {
    /// Created on first use, within the runtime.
    sleep: Option<Pin<Box<Sleep>>>,
    is_set: bool,
}

impl DeadlineTimer {
    /// Returns whether the deadline has passed. If not, the task wakes then or earlier.
    pub(super) fn has_passed(&mut self, deadline: Instant, context: &mut Context<'_>) -> bool {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        loop {
            if Instant::now() >= deadline {
                return true;
            }
            if !self.is_set {
                sleep.as_mut().reset(deadline);
                self.is_set = true;
            }
            if sleep.as_mut().poll(context).is_pending() {
                return false;
            }
            self.is_set = false;
        }
    }
}
