//! Waits for several futures concurrently, without a runtime.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Polls all futures until each is done, and returns their outputs in order.
pub(super) async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut states: Vec<State<F>> =
        futures.map(|future| State::Pending(Box::pin(future))).collect();
    poll_fn(|context| {
        let mut is_done = true;
        for state in &mut states {
            if let State::Pending(future) = state {
                match future.as_mut().poll(context) {
                    Poll::Ready(output) => *state = State::Done(output),
                    Poll::Pending => is_done = false,
                }
            }
        }
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    let outputs = states.into_iter().filter_map(|state| match state {
        State::Done(output) => Some(output),
        State::Pending(_) => None,
    });
    outputs.collect()
}

enum State<F: Future> {
    Pending(Pin<Box<F>>),
    Done(F::Output),
}
