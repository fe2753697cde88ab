//! A callback that runs exactly once.

use crate::failure::Failure;
use crate::resp::Reply;

/// The callback of a request. If a runtime that shuts down drops it, it reports a failure.
pub(super) struct Completion<F: FnOnce(Result<Reply, Failure>)> {
    /// `None` once called.
    on_reply: Option<F>,
}

impl<F: FnOnce(Result<Reply, Failure>)> Completion<F> {
    pub(super) const fn new(on_reply: F) -> Self {
        Self { on_reply: Some(on_reply) }
    }

    pub(super) fn complete(mut self, result: Result<Reply, Failure>) {
        if let Some(on_reply) = self.on_reply.take() {
            on_reply(result);
        }
    }
}

/// The request has not run: a request whose bytes may have left is completed by its link, and only one that waits to be
/// sent again is dropped.
impl<F: FnOnce(Result<Reply, Failure>)> Drop for Completion<F> {
    fn drop(&mut self) {
        if let Some(on_reply) = self.on_reply.take() {
            let reason = "the runtime shut down before the call could be retried";
            on_reply(Err(Failure::Unreachable(reason.to_owned())));
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn callback_runs_once_even_if_dropped() {
        let results: Mutex<Vec<bool>> = Mutex::default();
        let completion = || Completion::new(|result| results.lock().push(result.is_ok()));
        completion().complete(Ok(Reply::Null));
        drop(completion());
        assert_eq!(*results.lock(), [true, false]);
    }
}
