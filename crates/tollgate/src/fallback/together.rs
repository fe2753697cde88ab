//! Several futures at once, without a runtime.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Waits for all of them, and gives what they gave in their order.
pub(super) async fn together<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<State<F>> = futures.map(|it| State::Waiting(Box::pin(it))).collect();
    poll_fn(|context| {
        let mut is_over = true;
        for state in &mut waiting {
            if let State::Waiting(future) = state {
                match future.as_mut().poll(context) {
                    Poll::Ready(output) => *state = State::Done(output),
                    Poll::Pending => is_over = false,
                }
            }
        }
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    let done = waiting.into_iter().filter_map(|state| match state {
        State::Done(output) => Some(output),
        State::Waiting(_) => None,
    });
    done.collect()
}

enum State<F: Future> {
    Waiting(Pin<Box<F>>),
    Done(F::Output),
}
