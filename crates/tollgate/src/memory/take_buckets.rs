//! Takes from several limits of one subject. The usual case, existing token buckets whose takes are all enforced, is
//! compiled separately: it needs one lock, one hash and one search per limit. `take_all` has the general case, with the same
//! results.

use std::hash::BuildHasher;

use smallvec::SmallVec;

use super::slot::LookupKey;
use super::table::Table;
use super::{MemoryStore, hash};
use crate::algorithm::{BucketTake, TokenBucket, Verdict};
use crate::decision::{Decision, Outcome, Status};
use crate::limit::Limit;
use crate::plan::{MAX_TAKES, Mode, Take};
use crate::time::{Clock, Timestamp};

/// A limit and the cost of its take.
type Cost<'a> = (&'a Limit, u64);

/// An evaluated take.
struct Evaluated<'a, 'n> {
    limit: &'a Limit,
    parameters: &'a TokenBucket,
    cost: u64,
    lookup: LookupKey<'n>,
    /// Index of the bucket in its table.
    index: usize,
    take: BucketTake,
}

/// The takes of one plan.
type Evaluations<'a, 'n> = SmallVec<[Evaluated<'a, 'n>; MAX_TAKES]>;

impl<C: Clock, H: BuildHasher> MemoryStore<C, H> {
    /// Takes all or nothing from enforced limits of one subject. Returns `None`, and takes nothing, if this is not the usual
    /// case.
    #[inline]
    pub(crate) fn take_buckets<'a>(
        &self,
        subject: &str,
        costs: impl Iterator<Item = Cost<'a>>,
    ) -> Option<Decision<'a>> {
        let mut all = Evaluations::new();
        let now = self.evaluate_and_take(subject, costs, &mut all)?;
        let status = |one: &Evaluated<'a, '_>| {
            Status::with_outcome(one.limit, Mode::Enforce, Outcome::Bucket(one.take))
        };
        Some(Decision::new(now, all.iter().map(status)))
    }

    /// Like `take_buckets`, and returns only the verdict.
    #[inline]
    pub(crate) fn check_buckets<'a>(
        &self,
        subject: &str,
        costs: impl Iterator<Item = Cost<'a>>,
    ) -> Option<Verdict> {
        let mut all = Evaluations::new();
        self.evaluate_and_take(subject, costs, &mut all)?;
        let worst = all.iter().map(|one| one.take).max_by_key(|take| take.severity());
        worst.map(BucketTake::verdict)
    }

    /// Like `take_buckets`, for the takes of a plan.
    pub(super) fn take_plan<'a>(&self, takes: &[Take<'a>]) -> Option<Decision<'a>> {
        let subject = takes.first()?.key().subject();
        let is_usual =
            |take: &Take<'_>| take.mode() == Mode::Enforce && take.key().subject() == subject;
        if !takes.iter().all(is_usual) {
            return None;
        }
        self.take_buckets(subject, takes.iter().map(|take| (take.key().limit(), take.cost())))
    }

    /// Evaluates every take, then takes if all pass. Returns the time of the decision.
    #[inline(always)]
    fn evaluate_and_take<'a, 'n>(
        &self,
        subject: &'n str,
        mut costs: impl Iterator<Item = Cost<'a>>,
        all: &mut Evaluations<'a, 'n>,
    ) -> Option<Timestamp> {
        let subject = subject.as_bytes();
        let subject_hash = hash::of_subject(subject, &self.hasher);
        let first = costs.next()?;
        let registered = self.registry.find(first.0);
        let lookup = registered.limit.is_bucket().then(|| LookupKey::new(registered, subject))?;
        let block = hash::block(registered.identity);
        let shard = self.shard_of(hash::of_identity(subject_hash, registered.identity));
        let reading = self.clock.monotonic_now();
        let mut table = self.lock_one(shard)?;
        let now = self.now_by(reading, &mut table);
        for (limit, cost) in std::iter::once(first).chain(costs) {
            let registered = self.registry.find(limit);
            let parameters = registered.bucket_of(limit)?;
            if hash::block(registered.identity) != block {
                return None;
            }
            let lookup = lookup.with_limit(registered);
            let hash = hash::of_identity(subject_hash, registered.identity);
            let (index, packed) = table.find_bucket(hash, &lookup)?;
            let bucket = parameters.state(packed.at(), packed.deficit());
            let take = parameters.evaluate(&bucket, now.as_micros(), cost)?;
            all.push(Evaluated { limit, parameters, cost, lookup, index, take });
        }
        if all.iter().all(|one| one.take.is_allowed()) {
            all.iter_mut().for_each(|one| one.apply(&mut table, now));
        }
        Some(now)
    }
}

impl Evaluated<'_, '_> {
    /// Applies the take, which passes.
    #[inline(always)]
    fn apply(&mut self, table: &mut Table, now: Timestamp) {
        self.take = self.parameters.taken(self.take, self.cost);
        // A cost of 0 changes nothing; the time of a bucket is that of its last change.
        if self.cost > 0
            && let Some(bucket) = table.bucket_at(self.index, &self.lookup)
        {
            let state = self.parameters.state(now.as_micros(), self.take.deficit());
            bucket.set(self.lookup.limit(), &state);
        }
    }
}

#[cfg(test)]
mod tests;
