//! Owned decisions: results that borrow nothing, for callers that keep or send them.

use std::num::NonZeroU32;
use std::ptr;
use std::time::Duration;

use crate::algorithm::{Reply, Verdict};
use crate::decision::{Decision, Permit, Source, Status};
use crate::limit::Limit;
use crate::plan::{Mode, OnStoreLoss, Plan};
use crate::time::Timestamp;

/// A decision that borrows nothing: the result of [`Limiter::check`](crate::Limiter::check) and
/// [`KeyedLimiter::check`](crate::KeyedLimiter::check).
///
/// ```
/// use tollgate::{KeyedLimiter, Limit, MemoryStore, Quota};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let limit = Limit::token_bucket(Quota::per_minute(10))?;
/// let limiter = KeyedLimiter::new(MemoryStore::new(), limit);
/// let decision = limiter.check("user:1").cost(3).await?;
/// assert!(decision.is_allowed());
/// assert_eq!(decision.remaining(), Some(7));
/// assert_eq!(decision.retry_after(), None);
/// assert_eq!((decision.rule(), decision.limit_name()), ("default", Some("60s")));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct OwnedDecision {
    at: Timestamp,
    source: Source,
    loss: Option<OnStoreLoss>,
    verdict: Verdict,
    statuses: Box<[OwnedStatus]>,
    /// Index of the limit that decided.
    deciding: Option<usize>,
    /// The last rule that applied, for decisions without a limit; otherwise empty.
    last_rule: Box<str>,
    key: String,
    permit: Option<Permit>,
    expires_at: Option<Timestamp>,
}

/// One limit's status together with the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnedStatus {
    limit: Limit,
    mode: Mode,
    nodes: NonZeroU32,
    reply: Reply,
}

impl OwnedStatus {
    fn from_status(status: &Status<'_>) -> Self {
        let Status { limit, mode, nodes, .. } = *status;
        Self { limit: limit.clone(), mode, nodes, reply: status.reply() }
    }

    fn as_status(&self) -> Status<'_> {
        let status = Status::new_unclamped(&self.limit, self.mode, self.reply);
        Status { nodes: self.nodes, ..status }
    }
}

impl OwnedDecision {
    /// Copies a store's decision on a plan. `last_rule` names the rule of a decision without limits.
    pub(crate) fn new(
        plan: &Plan<'_>,
        decision: &Decision<'_>,
        last_rule: &str,
        key: impl Into<String>,
    ) -> Self {
        let deciding = decision.deciding().and_then(|deciding| {
            decision.statuses().iter().position(|status| ptr::eq(status, deciding))
        });
        let permit = Permit::of(plan, decision);
        let expires_at = permit.as_ref().and_then(|_| Permit::expires_at(plan, decision));
        Self {
            at: decision.at(),
            source: decision.source(),
            loss: decision.loss(),
            verdict: decision.verdict(),
            statuses: decision.statuses().iter().map(OwnedStatus::from_status).collect(),
            deciding,
            last_rule: if deciding.is_none() { last_rule.into() } else { Box::default() },
            key: key.into(),
            permit,
            expires_at,
        }
    }

    /// Returns whether the request may pass.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.verdict.is_allowed()
    }

    /// The verdict: allow, deny with a wait, or never.
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The time after which the same request passes. `None` if it passes now or can never pass.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.verdict.retry_after()
    }

    /// The amount that the deciding limit has left. `None` if no limit applies.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        self.deciding().map(|status| status.remaining())
    }

    /// The time until the deciding limit is full again. `None` if no limit applies.
    #[must_use]
    pub fn reset_after(&self) -> Option<Duration> {
        self.deciding().map(|status| status.reset_after())
    }

    /// The rule of the deciding limit; the last rule that matched if no limit applies.
    #[must_use]
    pub fn rule(&self) -> &str {
        let status = self.deciding.and_then(|index| self.statuses.get(index));
        status.map_or(&self.last_rule, |status| status.limit.rule())
    }

    /// The name of the deciding limit. `None` if no limit applies.
    #[must_use]
    pub fn limit_name(&self) -> Option<&str> {
        let status = self.deciding.and_then(|index| self.statuses.get(index));
        status.map(|status| status.limit.name())
    }

    /// The key that the deciding rule counts, in readable form.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The status of the limit that decided, with the rules of [`Decision::deciding`].
    #[must_use]
    pub fn deciding(&self) -> Option<Status<'_>> {
        self.statuses.get(self.deciding?).map(OwnedStatus::as_status)
    }

    /// One status per limit, in the order of the plan.
    pub fn statuses(&self) -> impl ExactSizeIterator<Item = Status<'_>> {
        self.statuses.iter().map(OwnedStatus::as_status)
    }

    /// Where the decision was made.
    #[must_use]
    pub const fn source(&self) -> Source {
        self.source
    }

    /// Returns whether a fallback decided because the store was lost.
    #[must_use]
    pub const fn is_degraded(&self) -> bool {
        self.loss.is_some()
    }

    /// The permit that holds the slots of concurrency limits, if the request took any.
    ///
    /// Release it with [`Limiter::release`](crate::Limiter::release) or
    /// [`KeyedLimiter::release`](crate::KeyedLimiter::release).
    #[must_use]
    pub const fn permit(&self) -> Option<&Permit> {
        self.permit.as_ref()
    }

    /// The store's time at which the first slot of the permit expires.
    #[must_use]
    pub const fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
    }

    /// The same decision in its borrowed form, for [`HeaderStyle`](crate::HeaderStyle) and
    /// [`Refusal`](crate::Refusal).
    ///
    /// ```
    /// use tollgate::{HeaderStyle, KeyedLimiter, Limit, MemoryStore, Quota};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limit = Limit::fixed_window(Quota::per_minute(10))?;
    /// let decision = KeyedLimiter::new(MemoryStore::new(), limit).check("user:1").await?;
    /// HeaderStyle::Draft6.write(&decision.as_decision(), |name, value| println!("{name}: {value}"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn as_decision(&self) -> Decision<'_> {
        let decision = Decision::new(self.at, self.statuses()).from_source(self.source);
        match self.loss {
            Some(loss) => decision.degraded(loss),
            None => decision,
        }
    }
}
