//! Status of one limit in a decision.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::algorithm::{BucketTake, Reply, TokenBucket, Verdict};
use crate::limit::Limit;
use crate::plan::Mode;

/// Status of one limit in a decision: its verdict, and its figures after the operation.
///
/// ```
/// use tollgate::{Limit, LocalLimiter, Quota};
///
/// let limiter = LocalLimiter::new(Limit::token_bucket(Quota::per_minute(10).burst(5))?);
/// let decision = limiter.take_n("k", 2);
/// let status = &decision.statuses()[0];
/// assert_eq!((status.count(), status.remaining()), (2, 3));
/// assert_eq!(status.limit().capacity(), 5);
/// assert_eq!(status.reset_after().as_secs(), 12);
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Status<'a> {
    pub(crate) limit: &'a Limit,
    pub(crate) mode: Mode,
    /// Number of nodes that share the limit in degraded mode, otherwise 1.
    pub(crate) nodes: NonZeroU32,
    pub(crate) outcome: Outcome,
}

/// Outcome of one take. The figures of a token bucket need divisions, so they are computed when they are read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome {
    /// Verdict and figures.
    Reply(Reply),
    /// Take from a token bucket; the limit of the status has its parameters.
    Bucket(BucketTake),
}

impl Outcome {
    pub(crate) const fn verdict(&self) -> Verdict {
        match self {
            Self::Reply(reply) => reply.verdict(),
            Self::Bucket(take) => take.verdict(),
        }
    }

    #[inline]
    pub(crate) const fn is_allowed(&self) -> bool {
        match self {
            Self::Reply(reply) => reply.is_allowed(),
            Self::Bucket(take) => take.is_allowed(),
        }
    }

    /// Sort key for refusals; see [`Reply::severity`].
    pub(crate) const fn severity(&self) -> u64 {
        match self {
            Self::Reply(reply) => reply.severity(),
            Self::Bucket(take) => take.severity(),
        }
    }
}

/// Compares the figures, however they are stored.
impl PartialEq for Status<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.limit, self.mode, self.nodes, self.reply())
            == (other.limit, other.mode, other.nodes, other.reply())
    }
}

impl Eq for Status<'_> {}

impl<'a> Status<'a> {
    /// Creates the status of one take. `remaining` is clamped to the limit's capacity.
    #[must_use]
    pub fn new(limit: &'a Limit, mode: Mode, reply: Reply) -> Self {
        Self::new_unclamped(limit, mode, reply.within(limit.capacity()))
    }

    /// Creates a status from a reply of this limit, whose `remaining` is known to be within the capacity.
    #[inline]
    pub(crate) const fn new_unclamped(limit: &'a Limit, mode: Mode, reply: Reply) -> Self {
        Self::with_outcome(limit, mode, Outcome::Reply(reply))
    }

    #[inline]
    pub(crate) const fn with_outcome(limit: &'a Limit, mode: Mode, outcome: Outcome) -> Self {
        Self { limit, mode, nodes: NonZeroU32::MIN, outcome }
    }

    /// Returns the same status of an equal limit.
    #[cfg(feature = "policy")]
    #[inline]
    pub(crate) const fn of_limit<'b>(&self, limit: &'b Limit) -> Status<'b> {
        Status { limit, mode: self.mode, nodes: self.nodes, outcome: self.outcome }
    }

    /// Verdict and figures.
    pub(crate) const fn reply(&self) -> Reply {
        match (self.outcome, self.bucket_take()) {
            (Outcome::Reply(reply), _) => reply,
            (Outcome::Bucket(take), Some((bucket, _))) => bucket.reply_to(take),
            // Unreachable: only token buckets have this outcome.
            (Outcome::Bucket(_), None) => Reply::NEVER,
        }
    }

    /// Creates the status of one take in degraded mode, where the node enforces its share: 1/`nodes` of the
    /// limit. `remaining` is clamped to the share.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use std::time::Duration;
    /// use tollgate::algorithm::Reply;
    /// use tollgate::{Limit, Mode, Quota, Status, Verdict};
    ///
    /// let limit = Limit::fixed_window(Quota::per_minute(10))?;
    /// let reply = Reply::new(Verdict::Allow, 3, Duration::from_secs(60));
    /// let three = NonZeroU32::new(3).ok_or("zero")?;
    /// let status = Status::of_share(&limit, Mode::Enforce, reply, three);
    /// assert_eq!((status.share(), status.count(), status.remaining()), (Some(4), 1, 3));
    /// assert_eq!(status.limit().count(), 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn of_share(limit: &'a Limit, mode: Mode, reply: Reply, nodes: NonZeroU32) -> Self {
        let unclamped = Self { nodes, ..Self::new_unclamped(limit, mode, reply) };
        Self { outcome: Outcome::Reply(reply.within(unclamped.capacity())), ..unclamped }
    }

    /// Share of the limit's capacity that this node enforced; `None` if it evaluated the whole limit.
    #[must_use]
    pub fn share(&self) -> Option<u64> {
        (self.nodes != NonZeroU32::MIN).then(|| self.capacity())
    }

    /// Maximum cost of one take: the limit's capacity, or this node's share of it, rounded up.
    fn capacity(&self) -> u64 {
        self.limit.capacity().div_ceil(u64::from(self.nodes.get()))
    }

    /// The evaluated limit.
    #[must_use]
    pub const fn limit(&self) -> &'a Limit {
        self.limit
    }

    /// Mode of the take: enforce or shadow.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Verdict of this limit alone.
    pub const fn verdict(&self) -> Verdict {
        self.outcome.verdict()
    }

    /// Quota used now.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.capacity() - self.remaining()
    }

    /// Quota that can be taken now.
    #[must_use]
    #[inline]
    pub const fn remaining(&self) -> u64 {
        match self.bucket_take() {
            Some((bucket, take)) => bucket.remaining(take.deficit()),
            None => self.reply().remaining(),
        }
    }

    /// Quota used beyond the limit, by settled reservations that cost more than estimated or before the limit was
    /// lowered.
    #[must_use]
    pub const fn debt(&self) -> u64 {
        match self.bucket_take() {
            Some((bucket, take)) => bucket.debt(take.deficit()),
            None => self.reply().debt(),
        }
    }

    /// Time until the limit is full again.
    #[must_use]
    #[inline]
    pub const fn reset_after(&self) -> Duration {
        match self.bucket_take() {
            Some((bucket, take)) => Duration::from_micros(bucket.reset_after(take.deficit())),
            None => self.reply().reset_after(),
        }
    }

    /// Returns a take whose figures are not computed yet, and the parameters of its bucket.
    #[inline]
    const fn bucket_take(&self) -> Option<(&'a TokenBucket, BucketTake)> {
        match (self.outcome, self.limit.parameters().as_token_bucket()) {
            (Outcome::Bucket(take), Some(bucket)) => Some((bucket, take)),
            _ => None,
        }
    }
}
