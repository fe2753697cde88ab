//! A call in a cluster that may be redirected to another node.

use tokio::time::Instant;

use super::Request;
use crate::failure::Failure;
use crate::link::OnReply;
use crate::resp::Reply;
use crate::slot::Slot;

/// A call that may be redirected, and its callback, which is called exactly once.
pub(super) struct RoutedCall {
    pub(super) slot: Slot,
    pub(super) request: Request,
    pub(super) deadline: Instant,
    pub(super) redirects: usize,
    /// `None` once called.
    on_reply: Option<OnReply>,
}

impl RoutedCall {
    pub(super) fn new(slot: Slot, request: Request, deadline: Instant, on_reply: OnReply) -> Self {
        Self { slot, request, deadline, redirects: 0, on_reply: Some(on_reply) }
    }

    pub(super) fn finish(mut self, result: Result<Reply, Failure>) {
        if let Some(on_reply) = self.on_reply.take() {
            on_reply(result);
        }
    }
}

/// Fails a call that waits for a retry when its runtime shuts down. The call has not run.
impl Drop for RoutedCall {
    fn drop(&mut self) {
        if let Some(on_reply) = self.on_reply.take() {
            let reason = "the runtime shut down before the call could be retried";
            on_reply(Err(Failure::Unreachable(reason.to_owned())));
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
    fn callback_runs_once_even_if_dropped() {
        let results: Arc<Mutex<Vec<bool>>> = Arc::default();
        let call = || {
            let results = Arc::clone(&results);
            let on_reply: OnReply = Box::new(move |result| results.lock().push(result.is_ok()));
            let request = Request::Command(Command::new("PING"));
            RoutedCall::new(Slot::ONLY, request, Instant::now(), on_reply)
        };
        call().finish(Ok(Reply::Null));
        drop(call());
        assert_eq!(*results.lock(), [true, false]);
    }
}
