//! Decisions through tollgate's Redis store.

use std::iter;
use std::sync::Arc;

use tollgate::{Decision, Key, LeaseSize, Limit, Plan, Store, Subject, Take};
use tollgate_redis::{Address, RedisStore};

use super::caller::Reply;
use super::limits::Limits;
use super::method::Method;
use super::task::{REPLY_TIMEOUT, Task};
use crate::Outcome;

/// A caller of the shared [`RedisStore`].
#[derive(Debug, Clone)]
pub(super) struct TollgateCaller {
    store: RedisStore,
    limits: Arc<[Limit]>,
    /// Whether the second limit has a different subject than the first.
    has_two_subjects: bool,
}

impl TollgateCaller {
    pub(super) async fn connect(task: &Task) -> Outcome<Self> {
        let builder = RedisStore::builder(task.url.parse::<Address>()?).timeout(REPLY_TIMEOUT);
        let store = match task.method {
            Method::TollgateCached | Method::TollgateLeased => builder.build(),
            _ => builder.max_refusals(0).build(),
        };
        store.connect().await?;
        let lease = match task.method {
            Method::TollgateLeased => LeaseSize::Auto,
            _ => LeaseSize::Off,
        };
        let limits = task.requests.limits.build(task.requests.burst)?.into_iter();
        let limits = limits.map(|limit| limit.with_lease(lease)).collect();
        Ok(Self { store, limits, has_two_subjects: task.requests.limits == Limits::TwoSubjects })
    }

    pub(super) async fn decide(&self, key: &str) -> Outcome<Reply> {
        let subject = Subject::of([key]);
        let second = self.has_two_subjects.then(|| Subject::of([key, "other"]));
        let subjects =
            iter::once(&subject).chain(iter::repeat(second.as_ref().unwrap_or(&subject)));
        let takes = subjects.zip(self.limits.iter());
        let takes = takes.map(|(subject, limit)| Take::new(Key::new(subject, limit), 1));
        let decision = self.store.take(&Plan::new(takes)?).await?;
        Ok(Reply { is_allowed: decision.is_allowed(), remaining: remaining(&decision) })
    }
}

fn remaining(decision: &Decision<'_>) -> u64 {
    decision.remaining().unwrap_or(0)
}
