//! Bounded concurrency for the store calls of a page.

use std::future::Future;

use futures_util::future::join_all;

/// Number of concurrent calls: enough that a page needs few round trips to Redis, and few enough that the last call
/// completes within its timeout.
const CHUNK_SIZE: usize = 64;

/// Runs the calls in chunks. Returns the results in order, or the first error: an unavailable store fails a page once.
pub(super) async fn try_join_chunks<T, E>(
    calls: Vec<impl Future<Output = Result<T, E>>>,
) -> Result<Vec<T>, E> {
    let mut calls = calls.into_iter();
    let mut results = Vec::with_capacity(calls.len());
    loop {
        let chunk = join_all(calls.by_ref().take(CHUNK_SIZE)).await;
        if chunk.is_empty() {
            return Ok(results);
        }
        for result in chunk {
            results.push(result?);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn bounds_concurrency_and_keeps_order() {
        let (running, max_running) = (Cell::new(0), Cell::new(0));
        let call = async |number: usize| {
            running.set(running.get() + 1);
            max_running.set(max_running.get().max(running.get()));
            yield_now().await;
            running.set(running.get() - 1);
            Ok::<_, ()>(number)
        };
        let results = try_join_chunks((0..1000).map(call).collect()).await.unwrap();
        assert!(results.into_iter().eq(0..1000));
        assert_eq!(max_running.get(), CHUNK_SIZE);
    }

    #[tokio::test]
    async fn stops_after_the_chunk_with_the_first_error() {
        let started = Cell::new(0);
        let call = async |number: usize| {
            started.set(started.get() + 1);
            if number % 10 == 3 { Err(number) } else { Ok(()) }
        };
        assert_eq!(try_join_chunks((0..1000).map(call).collect()).await, Err(3));
        assert_eq!(started.get(), CHUNK_SIZE);
    }
}
