//! Decisions: the result of one plan, with its statuses, permit and owned form.

mod owned;
mod permit;
mod status;

use std::cmp::Reverse;
use std::time::Duration;

use smallvec::SmallVec;

pub use owned::OwnedDecision;
pub use permit::{HeldKey, Permit, PermitError};
pub(crate) use status::Outcome;
pub use status::Status;

use crate::algorithm::Verdict;
use crate::limit::Limit;
use crate::plan::{Mode, OnStoreLoss};
#[cfg(feature = "policy")]
use crate::plan::{Plan, Take};
use crate::time::Timestamp;

/// Origin of a decision.
///
/// ```
/// use tollgate::{Decision, OnStoreLoss, Source, Timestamp};
///
/// let local = Decision::new(Timestamp::EPOCH, []).from_source(Source::Local);
/// let fallback = local.degraded(OnStoreLoss::Local);
/// assert_eq!(fallback.source(), Source::Local);
/// assert!(fallback.is_allowed() && fallback.is_degraded());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Source {
    /// The configured store, also if it is the memory store.
    #[default]
    Store,
    /// The refusal cache, without a store request.
    Cache,
    /// A lease: quota that the node debited from the store in advance.
    Lease,
    /// This node alone, because the store is unavailable or only in shadow use.
    Local,
}

/// Result of one plan: a verdict, one [`Status`] per limit, and its source.
///
/// A refusal is not an error.
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
    shadow: Option<Box<Decision<'a>>>,
}

/// Statuses of a decision; up to two without allocation.
pub(crate) type Statuses<'a> = SmallVec<[Status<'a>; 2]>;

impl<'a> Decision<'a> {
    /// Creates a store's decision at time `at` from the statuses of the plan's takes, in order.
    ///
    /// Its verdict is the most severe one of the enforced limits.
    #[must_use]
    pub fn new(at: Timestamp, statuses: impl IntoIterator<Item = Status<'a>>) -> Self {
        let statuses = statuses.into_iter().collect();
        Self { at, source: Source::Store, loss: None, statuses, shadow: None }
    }

    #[inline]
    pub(crate) fn of_one(at: Timestamp, limit: &'a Limit, mode: Mode, outcome: Outcome) -> Self {
        let mut statuses = Statuses::new();
        statuses.push(Status::with_outcome(limit, mode, outcome));
        Self { at, source: Source::Store, loss: None, statuses, shadow: None }
    }

    /// Returns the same decision with references to `limits`, which are in the plan's order, instead of to
    /// the plan's limits.
    pub(crate) fn with_limits(self, limits: &[Limit]) -> Decision<'_> {
        let Self { at, source, loss, statuses, .. } = self;
        let pairs = statuses.iter().zip(limits);
        let statuses = pairs.map(|(status, limit)| Status { limit, ..*status }).collect();
        Decision { at, source, loss, statuses, shadow: None }
    }

    /// Converts the decision of a peek to that of a take: `remaining` is reduced by the plan's costs. Times
    /// are unchanged.
    #[cfg(feature = "policy")]
    pub(crate) fn if_taken(&self, plan: &Plan<'a>) -> Self {
        let after = |(status, take): (&Status<'a>, &Take<'a>)| {
            let taken = if self.took(status.mode) { take.cost() } else { 0 };
            let outcome = Outcome::Reply(status.reply().with_less(taken));
            Status { outcome, ..*status }
        };
        let statuses = self.statuses.iter().zip(plan.takes()).map(after).collect();
        Self { statuses, shadow: self.shadow.clone(), ..*self }
    }

    /// Returns true if the takes of this mode were debited: the decision allows, and so do all limits of the
    /// mode (the enforced ones, or one shadow group).
    pub(crate) fn took(&self, mode: Mode) -> bool {
        let mut group = self.statuses.iter().filter(|status| status.mode == mode);
        self.is_allowed() && group.all(|status| status.outcome.is_allowed())
    }

    /// Returns true if the takes of this mode were debited; see [`Reserved`](crate::reservation::Reserved).
    #[doc(hidden)]
    #[must_use]
    pub fn has_taken(&self, mode: Mode) -> bool {
        self.took(mode)
    }

    /// Returns the same decision with another source.
    #[must_use]
    pub fn from_source(self, source: Source) -> Self {
        Self { source, ..self }
    }

    /// Returns the same decision, marked as made in degraded mode with this behaviour.
    #[must_use]
    pub fn degraded(self, loss: OnStoreLoss) -> Self {
        Self { loss: Some(loss), ..self }
    }

    /// Returns the same decision, with the store's decision on the takes that use it in shadow mode.
    #[must_use]
    pub fn with_shadow(self, shadow: Decision<'a>) -> Self {
        Self { shadow: Some(Box::new(shadow)), ..self }
    }

    /// Verdict of the request: the most severe one of the enforced limits.
    pub fn verdict(&self) -> Verdict {
        let worst = self.enforced().max_by_key(|status| status.outcome.severity());
        worst.map_or(Verdict::Allow, Status::verdict)
    }

    /// Returns true if all enforced limits allow the request.
    #[must_use]
    #[inline]
    pub fn is_allowed(&self) -> bool {
        // Most decisions have one limit.
        if let [only] = &*self.statuses {
            return only.mode != Mode::Enforce || only.outcome.is_allowed();
        }
        self.enforced().all(|status| status.outcome.is_allowed())
    }

    /// Time until the same request passes; `None` if it is allowed, or if waiting does not help.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.verdict().retry_after()
    }

    /// Time of the decision by the store's clock.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// Origin of the decision.
    #[must_use]
    pub const fn source(&self) -> Source {
        self.source
    }

    /// Returns true if the decision was made in degraded mode.
    #[must_use]
    pub const fn is_degraded(&self) -> bool {
        self.loss.is_some()
    }

    /// Behaviour that decided in degraded mode; `None` outside degraded mode.
    #[must_use]
    pub const fn loss(&self) -> Option<OnStoreLoss> {
        self.loss
    }

    /// Store's decision on the takes that use it in shadow mode ([`Distributed::Shadow`]), in the plan's order.
    /// `None` if there are none or the store is unavailable.
    ///
    /// [`Distributed::Shadow`]: crate::Distributed::Shadow
    #[must_use]
    pub fn shadow_decision(&self) -> Option<&Decision<'a>> {
        self.shadow.as_deref()
    }

    /// One status per limit, in the plan's order.
    #[must_use]
    pub fn statuses(&self) -> &[Status<'a>] {
        &self.statuses
    }

    /// Status of the enforced limit that decided: the one with the longest wait if refused, the one with the
    /// least remaining if allowed. `None` if no limit applies.
    #[must_use]
    #[inline]
    pub fn deciding(&self) -> Option<&Status<'a>> {
        // Most decisions have one limit.
        if let [only] = &*self.statuses {
            return (only.mode == Mode::Enforce).then_some(only);
        }
        // `min_by_key` returns the first of equals: the plan's order breaks ties.
        self.enforced().min_by_key(|status| {
            (Reverse(status.outcome.severity()), status.remaining(), Reverse(status.reset_after()))
        })
    }

    #[inline]
    fn enforced(&self) -> impl Iterator<Item = &Status<'a>> {
        self.statuses.iter().filter(|status| status.mode == Mode::Enforce)
    }

    /// Quota that can be taken now from the deciding limit; `None` if no limit applies.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        self.deciding().map(Status::remaining)
    }

    /// Time until the deciding limit is full again; `None` if no limit applies.
    #[must_use]
    pub fn reset_after(&self) -> Option<Duration> {
        self.deciding().map(Status::reset_after)
    }
}
