//! Takes from one key. The usual case, a token bucket of an existing key, is compiled separately: without the cases of
//! other states and operations, a take needs a quarter fewer instructions.

use std::hash::BuildHasher;

use super::MemoryStore;
use super::lock::MutexGuard;
use super::shard::Location;
use super::table::Table;
use crate::algorithm::{BucketTake, Op, Reply, Verdict};
use crate::decision::Outcome;
use crate::limit::Limit;
use crate::plan::Key;
use crate::time::{Clock, Timestamp};

impl<C: Clock, H: BuildHasher> MemoryStore<C, H> {
    /// Takes from one key.
    #[inline(always)]
    pub(crate) fn take_one(&self, key: &Key<'_>, cost: u64) -> (Outcome, Timestamp) {
        match self.take_bucket(key, cost) {
            Ok((take, now)) => (Outcome::Bucket(take), now),
            Err((reply, now)) => (Outcome::Reply(reply), now),
        }
    }

    /// Takes from one key and returns only the verdict.
    #[inline(always)]
    pub(crate) fn check_one(&self, key: &Key<'_>, cost: u64) -> Verdict {
        match self.take_bucket(key, cost) {
            Ok((take, _)) => take.verdict(),
            Err((reply, _)) => reply.verdict(),
        }
    }

    /// Takes from a packed token bucket, without its figures. All other
    /// cases return `Err` with the reply.
    #[inline(always)]
    fn take_bucket(
        &self,
        key: &Key<'_>,
        cost: u64,
    ) -> Result<(BucketTake, Timestamp), (Reply, Timestamp)> {
        let registered = self.registry.find(key.limit());
        let Some(parameters) = registered.bucket_of(key.limit()) else {
            return Err(self.take_slow(key.subject(), key.limit(), cost));
        };
        let subject = key.subject().as_bytes();
        let Location { shard, hash, lookup } = self.location(registered, subject);
        let reading = self.clock.monotonic_now();
        let Some(mut table) = self.lock_one(shard) else {
            return Err(self.take_slow(key.subject(), key.limit(), cost));
        };
        let now = self.now_by(reading, &mut table);
        match table.bucket_mut(hash, &lookup) {
            Some(bucket) => Ok((bucket.take(registered.limit, parameters, now, cost), now)),
            None => {
                let reply = self.take_unpacked(table, key.subject(), key.limit(), cost);
                Err((reply, now))
            }
        }
    }

    #[inline(never)]
    fn take_slow(&self, subject: &str, limit: &Limit, cost: u64) -> (Reply, Timestamp) {
        self.apply(&Key::private(subject, limit), Op::Take { cost })
    }

    /// Takes from a key that does not exist yet, or whose state is not a bucket with the limit's parameters.
    #[cold]
    #[inline(never)]
    fn take_unpacked(
        &self,
        mut table: MutexGuard<'_, Table>,
        subject: &str,
        limit: &Limit,
        cost: u64,
    ) -> Reply {
        let (mut text, op, now) = (Vec::new(), Op::Take { cost }, table.last());
        let at = self.locate(&Key::private(subject, limit), &mut text);
        let known = self.step(&mut table, &at, now, op);
        known.unwrap_or_else(|| self.apply_new(&mut table, &at, now, op))
    }
}
