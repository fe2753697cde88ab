//! One limit's part in a decision.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::algorithm::Reply;
use crate::decision::Verdict;
use crate::limit::Limit;
use crate::plan::Mode;

/// One limit's part in a decision: its verdict, and the figures after it.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status<'a> {
    pub(crate) limit: &'a Limit,
    pub(crate) mode: Mode,
    /// Between how many nodes the limit was divided for this answer.
    pub(crate) among: NonZeroU32,
    pub(crate) reply: Reply,
}

impl<'a> Status<'a> {
    /// What a store has to say of one take. More than the limit's capacity never remains.
    #[must_use]
    pub fn new(limit: &'a Limit, mode: Mode, reply: Reply) -> Self {
        Self::known(limit, mode, reply.within(limit.capacity()))
    }

    /// The same of a reply that is known to be of this limit.
    #[inline]
    pub(crate) const fn known(limit: &'a Limit, mode: Mode, reply: Reply) -> Self {
        Self { limit, mode, among: NonZeroU32::MIN, reply }
    }

    /// What a node has to say that counts its share of the limit alone, as one among so many. More than the
    /// share never remains.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use std::time::Duration;
    /// use tollgate::algorithm::Reply;
    /// use tollgate::{Limit, Mode, Quota, Status, Verdict};
    ///
    /// let limit = Limit::fixed_window(Quota::per_minute(10))?;
    /// let reply = Reply::new(Verdict::Allow, 3, Duration::from_secs(60));
    /// let three = NonZeroU32::new(3).ok_or("not none")?;
    /// let status = Status::of_share(&limit, Mode::Enforce, reply, three);
    /// assert_eq!((status.share(), status.count(), status.remaining()), (Some(4), 1, 3));
    /// assert_eq!(status.limit().count(), 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn of_share(limit: &'a Limit, mode: Mode, reply: Reply, among: NonZeroU32) -> Self {
        let whole = Self { limit, mode, among, reply };
        Self { reply: reply.within(whole.capacity()), ..whole }
    }

    /// What this node alone may have of the limit's capacity, where it answered by its share; none where the
    /// whole limit was counted.
    #[must_use]
    pub fn share(&self) -> Option<u64> {
        (self.among != NonZeroU32::MIN).then(|| self.capacity())
    }

    /// The most that could be taken at once: the limit's capacity, or this node's share of it.
    fn capacity(&self) -> u64 {
        self.limit.capacity().div_ceil(u64::from(self.among.get()))
    }

    /// The limit, which tells its name and numbers.
    #[must_use]
    pub const fn limit(&self) -> &'a Limit {
        self.limit
    }

    /// Whether the limit is enforced or only watched.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// What this limit alone would have said.
    pub const fn verdict(&self) -> Verdict {
        self.reply.verdict()
    }

    /// What is used now.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.capacity() - self.reply.remaining()
    }

    /// What could be taken now.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.reply.remaining()
    }

    /// The time until the limit is full again.
    #[must_use]
    pub const fn reset_after(&self) -> Duration {
        self.reply.reset_after()
    }
}
