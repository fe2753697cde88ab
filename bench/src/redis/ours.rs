//! Asking as tollgate does.

use std::sync::Arc;

use tollgate::{Decision, Key, Limit, Plan, Store, Subject, Take};
use tollgate_redis::{Address, RedisStore};

use super::asker::Answer;
use super::task::{PATIENCE, Task};
use super::way::Way;
use crate::Outcome;

/// A caller of the store that all callers share.
#[derive(Debug, Clone)]
pub(super) struct Ours {
    store: RedisStore,
    limits: Arc<[Limit]>,
}

impl Ours {
    pub(super) async fn connect(task: &Task) -> Outcome<Self> {
        let builder = RedisStore::builder(task.url.parse::<Address>()?).timeout(PATIENCE);
        let store = match task.way {
            Way::Remembering => builder.build(),
            _ => builder.max_refusals(0).build(),
        };
        store.connect().await?;
        Ok(Self { store, limits: task.ask.limits.of(task.ask.burst)?.into() })
    }

    pub(super) async fn ask(&self, key: &str) -> Outcome<Answer> {
        let subject = Subject::of([key]);
        let takes = self.limits.iter().map(|limit| Take::new(Key::new(&subject, limit), 1));
        let decision = self.store.take(&Plan::new(takes)?).await?;
        Ok(Answer { is_allowed: decision.is_allowed(), remaining: remaining(&decision) })
    }
}

fn remaining(decision: &Decision<'_>) -> u64 {
    decision.remaining().unwrap_or(0)
}
