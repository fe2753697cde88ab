//! The answer to one request.

use std::cmp::Reverse;
use std::time::Duration;

use smallvec::SmallVec;

use crate::algorithm::Reply;
use crate::distribution::OnStoreLoss;
use crate::limit::Limit;
use crate::plan::Mode;
#[cfg(feature = "policy")]
use crate::plan::{Plan, Take};
use crate::status::Status;
use crate::time::Timestamp;

/// Whether a request may pass now, and if not, when.
///
/// ```
/// use tollgate::{Limit, LocalLimiter, Quota, Verdict};
///
/// let limiter = LocalLimiter::new(Limit::fixed_window(Quota::per_minute(1))?);
/// let _ = limiter.take("k");
/// match limiter.take("k").verdict() {
///     Verdict::Allow => unreachable!("one a minute"),
///     Verdict::Deny { retry_after } => assert!(retry_after.as_secs() <= 60),
///     Verdict::Never => unreachable!("a cost of one fits"),
/// }
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It passes.
    Allow,
    /// Not now. After `retry_after` the same request passes if nobody else took the room; a
    /// microsecond earlier it does not.
    Deny {
        /// How long to wait.
        retry_after: Duration,
    },
    /// The cost exceeds the burst: waiting will not help.
    Never,
}

impl Verdict {
    /// Whether it passes.
    #[must_use]
    pub const fn is_allowed(self) -> bool {
        matches!(self, Self::Allow)
    }

    /// How long to wait, where waiting helps and is needed.
    #[must_use]
    pub const fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Deny { retry_after } => Some(retry_after),
            Self::Allow | Self::Never => None,
        }
    }
}

/// Who answered.
///
/// ```
/// use tollgate::{Decision, OnStoreLoss, Source, Timestamp};
///
/// let alone = Decision::new(Timestamp::EPOCH, []).from_source(Source::Local);
/// let fallback = alone.degraded(OnStoreLoss::Local);
/// assert_eq!(fallback.source(), Source::Local);
/// assert!(fallback.is_allowed() && fallback.is_degraded());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Source {
    /// The store that was configured, memory included.
    #[default]
    Store,
    /// A remembered refusal, without asking the store.
    Cache,
    /// A share taken from the store beforehand.
    Lease,
    /// This node alone, because the store could not be asked or is only being tried.
    Local,
}

/// The answer to one plan: a verdict, one [`Status`] per limit, and where it came from.
///
/// Being refused is not an error.
///
/// ```
/// use tollgate::{Limit, LocalLimiter, Quota, Verdict};
///
/// let limiter = LocalLimiter::new(Limit::token_bucket(Quota::per_minute(10))?);
/// let decision = limiter.take_n("user:1", 3);
/// assert!(decision.is_allowed());
/// assert_eq!(decision.remaining(), Some(7));
/// assert_eq!(decision.deciding().map(|status| status.limit().name()), Some("60s"));
/// assert_eq!(limiter.take_n("user:1", 11).verdict(), Verdict::Never);
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision<'a> {
    at: Timestamp,
    source: Source,
    loss: Option<OnStoreLoss>,
    statuses: Statuses<'a>,
    beside: Option<Box<Decision<'a>>>,
}

/// Up to two without allocating.
pub(crate) type Statuses<'a> = SmallVec<[Status<'a>; 2]>;

impl<'a> Decision<'a> {
    /// What a store decided at `at`: the statuses of a plan's takes, in their order.
    ///
    /// The verdict is that of the enforced limit most in the way.
    #[must_use]
    pub fn new(at: Timestamp, statuses: impl IntoIterator<Item = Status<'a>>) -> Self {
        let statuses = statuses.into_iter().collect();
        Self { at, source: Source::Store, loss: None, statuses, beside: None }
    }

    #[inline]
    pub(crate) fn of_one(at: Timestamp, limit: &'a Limit, mode: Mode, reply: Reply) -> Self {
        let mut statuses = Statuses::new();
        statuses.push(Status::known(limit, mode, reply));
        Self { at, source: Source::Store, loss: None, statuses, beside: None }
    }

    /// The same decision, borrowing its limits from `limits` instead of from the plan that named
    /// them in this order.
    pub(crate) fn borrowing(self, limits: &[Limit]) -> Decision<'_> {
        let Self { at, source, loss, statuses, .. } = self;
        let rebound = statuses.iter().zip(limits);
        let statuses = rebound.map(|(status, limit)| Status { limit, ..*status }).collect();
        Decision { at, source, loss, statuses, beside: None }
    }

    /// What a peek would have answered, had it taken: allowed, with the plan's costs less remaining.
    /// Times stay those before.
    #[cfg(feature = "policy")]
    pub(crate) fn if_taken(&self, plan: &Plan<'a>) -> Self {
        let after = |(status, take): (&Status<'a>, &Take<'a>)| {
            let taken = if self.took(status.mode) { take.cost() } else { 0 };
            Status { reply: status.reply.with_less(taken), ..*status }
        };
        let statuses = self.statuses.iter().zip(plan.takes()).map(after).collect();
        Self { statuses, beside: self.beside.clone(), ..*self }
    }

    /// Whether the takes of this mode took anything: the enforced, or those of a shadow group that passed as a
    /// whole.
    pub(crate) fn took(&self, mode: Mode) -> bool {
        let mut group = self.statuses.iter().filter(|status| status.mode == mode);
        self.is_allowed() && group.all(|status| status.reply.is_allowed())
    }

    /// The same decision, said to come from elsewhere.
    #[must_use]
    pub fn from_source(self, source: Source) -> Self {
        Self { source, ..self }
    }

    /// The same decision, marked as a fallback's, made in this way.
    #[must_use]
    pub fn degraded(self, loss: OnStoreLoss) -> Self {
        Self { loss: Some(loss), ..self }
    }

    /// The same decision, beside what the store said of the takes that are only tried on it.
    #[must_use]
    pub fn with_shadow(self, beside: Decision<'a>) -> Self {
        Self { beside: Some(Box::new(beside)), ..self }
    }

    /// Whether the request passes: the verdict of the enforced limit most in the way.
    pub fn verdict(&self) -> Verdict {
        let worst = self.enforced().max_by_key(|status| status.reply.severity());
        worst.map_or(Verdict::Allow, Status::verdict)
    }

    /// Whether the request passes.
    #[must_use]
    #[inline]
    pub fn is_allowed(&self) -> bool {
        self.enforced().all(|status| status.reply.is_allowed())
    }

    /// How long to wait, where waiting helps and is needed.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.verdict().retry_after()
    }

    /// The store's time of the decision.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// Who answered.
    #[must_use]
    pub const fn source(&self) -> Source {
        self.source
    }

    /// Whether a fallback answered because the store could not.
    #[must_use]
    pub const fn is_degraded(&self) -> bool {
        self.loss.is_some()
    }

    /// In which way a fallback answered; none if none did.
    #[must_use]
    pub const fn loss(&self) -> Option<OnStoreLoss> {
        self.loss
    }

    /// What the store said of the takes that are only tried on it ([`Distributed::Shadow`]), in the plan's
    /// order; none if there are none or it could not be asked.
    ///
    /// [`Distributed::Shadow`]: crate::Distributed::Shadow
    #[must_use]
    pub fn shadow_decision(&self) -> Option<&Decision<'a>> {
        self.beside.as_deref()
    }

    /// One status per limit, in the plan's order.
    #[must_use]
    pub fn statuses(&self) -> &[Status<'a>] {
        &self.statuses
    }

    /// The enforced limit that decided: when refused the one with the longest wait, when allowed the
    /// one with the least remaining. None when no limit applies.
    #[must_use]
    pub fn deciding(&self) -> Option<&Status<'a>> {
        // Of equals the first, so that the plan's order breaks ties.
        self.enforced().min_by_key(|status| {
            (Reverse(status.reply.severity()), status.remaining(), Reverse(status.reset_after()))
        })
    }

    #[inline]
    fn enforced(&self) -> impl Iterator<Item = &Status<'a>> {
        self.statuses.iter().filter(|status| status.mode == Mode::Enforce)
    }

    /// What could be taken now of the deciding limit; none when no limit applies.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        self.deciding().map(Status::remaining)
    }

    /// The time until the deciding limit is full again; none when no limit applies.
    #[must_use]
    pub fn reset_after(&self) -> Option<Duration> {
        self.deciding().map(Status::reset_after)
    }
}
