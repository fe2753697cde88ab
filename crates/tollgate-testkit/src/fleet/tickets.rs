//! Tickets: answers that tasks wait for.

use std::collections::HashMap;

use super::request::Answer;

#[derive(Debug, Default)]
pub(super) struct Tickets {
    by_number: HashMap<u64, (usize, Option<Answer>)>,
    last: u64,
    /// The task that is polled.
    pub(super) current_task: usize,
}

impl Tickets {
    /// Creates a ticket for the answer to a request of the current task.
    pub(super) fn create(&mut self) -> u64 {
        self.last += 1;
        self.by_number.insert(self.last, (self.current_task, None));
        self.last
    }

    /// Stores the answer of a ticket. Returns the task that waits for it.
    pub(super) fn answer(&mut self, ticket: u64, answer: Answer) -> Option<usize> {
        let (task, place) = self.by_number.get_mut(&ticket)?;
        *place = Some(answer);
        Some(*task)
    }

    pub(super) fn take_answer(&mut self, ticket: u64) -> Option<Answer> {
        self.by_number.get_mut(&ticket)?.1.take()
    }

    pub(super) fn remove(&mut self, ticket: u64) {
        self.by_number.remove(&ticket);
    }
}
