//! Subjects of requests, whose memory each thread reuses, so that planning a request allocates nothing.

use std::cell::Cell;
use std::ops::Deref;

use crate::subject::Subject;

/// The maximum memory that a thread keeps, in bytes.
const MAX_KEPT: usize = 1024;

thread_local! {
    /// The memory of the last subject that was dropped.
    static SPARE: Cell<Subject> = const { Cell::new(Subject::empty()) };
}

/// A subject that returns its memory to the thread.
#[derive(Debug)]
pub(super) struct RecycledSubject(Subject);

impl RecycledSubject {
    /// Creates the subject; see [`Subject::from_optional`].
    #[inline]
    pub(super) fn from_optional<F: AsRef<[u8]>>(
        tenant: &[u8],
        facts: impl Iterator<Item = Option<F>>,
    ) -> Self {
        // While a thread ends, its spare memory does not exist any more.
        let spare = SPARE.try_with(|spare| spare.replace(Subject::empty()));
        let mut subject = spare.unwrap_or(Subject::empty());
        subject.set(tenant, facts);
        Self(subject)
    }
}

impl Drop for RecycledSubject {
    #[inline]
    fn drop(&mut self) {
        if self.0.capacity() <= MAX_KEPT {
            let subject = std::mem::replace(&mut self.0, Subject::empty());
            let _ = SPARE.try_with(|spare| spare.set(subject));
        }
    }
}

impl Deref for RecycledSubject {
    type Target = Subject;

    fn deref(&self) -> &Subject {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_KEPT, RecycledSubject, Subject};

    fn subject(fact: &str) -> RecycledSubject {
        RecycledSubject::from_optional(b"acme", [Some(fact)].into_iter())
    }

    #[test]
    fn recycled_subjects_equal_new_ones() {
        let long = "x".repeat(MAX_KEPT + 1);
        for fact in ["c1", "a:b", "", &long, "c2"] {
            let recycled = (subject(fact), subject("other"));
            assert_eq!(*recycled.0, Subject::in_tenant("acme", [fact]));
            assert_eq!(*recycled.1, Subject::in_tenant("acme", ["other"]));
        }
    }

    #[test]
    fn thread_keeps_no_long_subject() {
        drop(subject("c1"));
        drop(subject(&"x".repeat(MAX_KEPT + 1)));
        assert!(subject("c2").capacity() <= MAX_KEPT);
    }
}
