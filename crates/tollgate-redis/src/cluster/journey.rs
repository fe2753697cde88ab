//! A call on its way to whoever has its slot.

use tokio::time::Instant;

use crate::caller::Work;
use crate::failure::Failure;
use crate::link::Then;
use crate::resp::Reply;
use crate::slot::Slot;

/// A call that may be sent on, and whoever waits for it. It is told once, however it ends.
pub(super) struct Journey {
    pub(super) slot: Slot,
    pub(super) work: Work,
    pub(super) until: Instant,
    pub(super) redirects: usize,
    /// There until it is told.
    then: Option<Then>,
}

impl Journey {
    pub(super) fn new(slot: Slot, work: Work, until: Instant, then: Then) -> Self {
        Self { slot, work, until, redirects: 0, then: Some(then) }
    }

    pub(super) fn end(mut self, result: Result<Reply, Failure>) {
        if let Some(then) = self.then.take() {
            then(result);
        }
    }
}

/// A call that waits to be sent again has not run. If its runtime ends first, whoever waits is told.
impl Drop for Journey {
    fn drop(&mut self) {
        if let Some(then) = self.then.take() {
            let why = "the runtime that was to send it again has ended";
            then(Err(Failure::Unreachable(why.to_owned())));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;
    use crate::resp::Command;

    #[test]
    fn whoever_waits_is_told_once_also_if_nobody_sends_it_on() {
        let told: Arc<Mutex<Vec<bool>>> = Arc::default();
        let journey = || {
            let told = Arc::clone(&told);
            let then: Then = Box::new(move |result| told.lock().push(result.is_ok()));
            Journey::new(Slot::ONLY, Work::Plain(Command::new("PING")), Instant::now(), then)
        };
        journey().end(Ok(Reply::Null));
        drop(journey());
        assert_eq!(*told.lock(), [true, false]);
    }
}
