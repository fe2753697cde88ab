//! Many questions, some at a time.

use std::future::Future;

use futures_util::future::join_all;

/// How many are asked together: enough that a page costs a shared store few calls, and few enough that the
/// last of them is answered within the patience that each has.
const AT_ONCE: usize = 64;

/// What is answered to all of them, in their order, or the first failure: a lost store fails a page once.
pub(super) async fn ask_all<T, E>(
    questions: Vec<impl Future<Output = Result<T, E>>>,
) -> Result<Vec<T>, E> {
    let mut questions = questions.into_iter();
    let mut answers = Vec::with_capacity(questions.len());
    loop {
        let told = join_all(questions.by_ref().take(AT_ONCE)).await;
        if told.is_empty() {
            return Ok(answers);
        }
        for answer in told {
            answers.push(answer?);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn so_many_are_asked_at_once_and_all_are_answered_in_order() {
        let (asked, most) = (Cell::new(0), Cell::new(0));
        let question = async |number: usize| {
            asked.set(asked.get() + 1);
            most.set(most.get().max(asked.get()));
            yield_now().await;
            asked.set(asked.get() - 1);
            Ok::<_, ()>(number)
        };
        let answers = ask_all((0..1000).map(question).collect()).await.unwrap();
        assert!(answers.into_iter().eq(0..1000));
        assert_eq!(most.get(), AT_ONCE);
    }

    #[tokio::test]
    async fn the_first_failure_ends_the_asking() {
        let asked = Cell::new(0);
        let question = async |number: usize| {
            asked.set(asked.get() + 1);
            if number % 10 == 3 { Err(number) } else { Ok(()) }
        };
        assert_eq!(ask_all((0..1000).map(question).collect()).await, Err(3));
        assert_eq!(asked.get(), AT_ONCE);
    }
}
