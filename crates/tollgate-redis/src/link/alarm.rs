//! One timer for all that must be answered in time.
//!
//! Deadlines pass in the order in which commands came. The timer is set to the oldest when there is
//! none set, and left alone when that one is answered: it rings early and is set anew. So it is touched
//! once in a while and not by every command.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;

use tokio::time::{Instant, Sleep, sleep_until};

#[derive(Debug, Default)]
pub(super) struct Alarm {
    /// Made on first use, within the runtime.
    sleep: Option<Pin<Box<Sleep>>>,
    is_set: bool,
}

impl Alarm {
    /// Whether the moment has come. If not, the task is woken then or before.
    pub(super) fn has_come(&mut self, moment: Instant, context: &mut Context<'_>) -> bool {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(moment)));
        loop {
            if Instant::now() >= moment {
                return true;
            }
            if !self.is_set {
                sleep.as_mut().reset(moment);
                self.is_set = true;
            }
            if sleep.as_mut().poll(context).is_pending() {
                return false;
            }
            self.is_set = false;
        }
    }
}
