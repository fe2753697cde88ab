//! Asking as tollgate does.

use std::iter;
use std::sync::Arc;

use tollgate::{Decision, Key, Limit, Plan, Store, Subject, Take};
use tollgate_redis::{Address, RedisStore};

use super::asker::Answer;
use super::limits::Limits;
use super::task::{PATIENCE, Task};
use super::way::Way;
use crate::Outcome;

/// A caller of the store that all callers share.
#[derive(Debug, Clone)]
pub(super) struct Ours {
    store: RedisStore,
    limits: Arc<[Limit]>,
    /// Whether the second limit is of another subject than the first.
    has_two_subjects: bool,
}

impl Ours {
    pub(super) async fn connect(task: &Task) -> Outcome<Self> {
        let builder = RedisStore::builder(task.url.parse::<Address>()?).timeout(PATIENCE);
        let store = match task.way {
            Way::Remembering => builder.build(),
            _ => builder.max_refusals(0).build(),
        };
        store.connect().await?;
        let limits = task.ask.limits.of(task.ask.burst)?.into();
        Ok(Self { store, limits, has_two_subjects: task.ask.limits == Limits::TwoSubjects })
    }

    pub(super) async fn ask(&self, key: &str) -> Outcome<Answer> {
        let subject = Subject::of([key]);
        let other = self.has_two_subjects.then(|| Subject::of([key, "other"]));
        let subjects = iter::once(&subject).chain(iter::repeat(other.as_ref().unwrap_or(&subject)));
        let takes = subjects.zip(self.limits.iter());
        let takes = takes.map(|(subject, limit)| Take::new(Key::new(subject, limit), 1));
        let decision = self.store.take(&Plan::new(takes)?).await?;
        Ok(Answer { is_allowed: decision.is_allowed(), remaining: remaining(&decision) })
    }
}

fn remaining(decision: &Decision<'_>) -> u64 {
    decision.remaining().unwrap_or(0)
}
