//! A plan: the takes of one request.

use std::fmt;

use smallvec::SmallVec;
use thiserror::Error;

use crate::distribution::{Distributed, Distribution, OnStoreLoss};
use crate::limit::Limit;
use crate::limit::identity::Algorithm;
use crate::permit::PermitId;
use crate::subject::Subject;

/// The most takes a plan may have.
pub const MAX_TAKES: usize = 16;

/// One counter: whose, and of which limit. Displayed as `{subject}:rule/limit`.
///
/// ```
/// use tollgate::{Key, Limit, Quota, Subject};
///
/// let limit = Limit::token_bucket(Quota::per_minute(10))?;
/// let subject = Subject::in_tenant("acme", ["c1"]);
/// assert_eq!(Key::new(&subject, &limit).to_string(), "{acme:c1}:default/60s");
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key<'a> {
    subject: &'a str,
    limit: &'a Limit,
}

impl<'a> Key<'a> {
    /// The counter of this subject under this limit.
    #[must_use]
    pub fn new(subject: &'a Subject, limit: &'a Limit) -> Self {
        Self { subject: subject.as_str(), limit }
    }

    /// For a store that nobody else writes to: the subject's bytes need no escaping there.
    pub(crate) const fn private(subject: &'a str, limit: &'a Limit) -> Self {
        Self { subject, limit }
    }

    /// Whose, as escaped text.
    #[must_use]
    pub const fn subject(&self) -> &'a str {
        self.subject
    }

    /// Of which limit.
    #[must_use]
    pub const fn limit(&self) -> &'a Limit {
        self.limit
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}:{}/{}", self.subject, self.limit.rule(), self.limit.name())
    }
}

/// Whether a limit may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// It refuses.
    Enforce,
    /// It is evaluated and counted but never refuses. The takes of one group pass or fail together,
    /// as they would if they were enforced.
    Shadow {
        /// Which takes belong together: those of one rule.
        group: u16,
    },
}

/// What is wanted of one counter.
///
/// ```
/// use tollgate::{Key, Limit, Mode, Quota, Subject, Take};
///
/// let limit = Limit::token_bucket(Quota::per_minute(10))?;
/// let subject = Subject::of(["c1"]);
/// let take = Take::new(Key::new(&subject, &limit), 3);
/// assert_eq!((take.cost(), take.mode()), (3, Mode::Enforce));
/// assert_eq!(take.shadow(7).mode(), Mode::Shadow { group: 7 });
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Take<'a> {
    key: Key<'a>,
    cost: u64,
    mode: Mode,
    distribution: Distribution,
}

impl<'a> Take<'a> {
    /// An enforced take. A cost of 0 only peeks.
    #[must_use]
    pub const fn new(key: Key<'a>, cost: u64) -> Self {
        let distribution =
            Distribution { distributed: Distributed::On, on_store_loss: OnStoreLoss::Local };
        Self { key, cost, mode: Mode::Enforce, distribution }
    }

    /// The same take, only watched.
    #[must_use]
    pub const fn shadow(self, group: u16) -> Self {
        Self { mode: Mode::Shadow { group }, ..self }
    }

    /// The same take, shared between nodes in another way.
    #[must_use]
    pub const fn with_distribution(self, distribution: Distribution) -> Self {
        Self { distribution, ..self }
    }

    /// The counter.
    #[must_use]
    pub const fn key(&self) -> Key<'a> {
        self.key
    }

    /// How much.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// Whether it may refuse.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// How nodes share its limit.
    #[must_use]
    pub const fn distribution(&self) -> Distribution {
        self.distribution
    }

    /// The same of another counter.
    pub(crate) fn of_key<'k>(&self, key: Key<'k>) -> Take<'k> {
        Take { key, cost: self.cost, mode: self.mode, distribution: self.distribution }
    }

    /// Whether it takes slots, which a permit can give back.
    pub(crate) fn holds_slots(&self) -> bool {
        self.cost > 0 && self.key.limit.algorithm() == Algorithm::Concurrency
    }
}

/// The takes of one request, decided together: all or nothing.
///
/// ```
/// use tollgate::{Key, Limit, MemoryStore, Plan, Quota, Subject, Take};
///
/// let per_user = Limit::token_bucket(Quota::per_minute(10))?.in_rule("user")?;
/// let overall = Limit::token_bucket(Quota::per_second(1000))?.in_rule("all")?;
/// let (user, all) = (Subject::of(["u1"]), Subject::of([""; 0]));
///
/// let plan = Plan::new([
///     Take::new(Key::new(&user, &per_user), 1),
///     Take::new(Key::new(&all, &overall), 1),
/// ])?;
/// let store = MemoryStore::new();
/// assert!(store.take(&plan).is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan<'a> {
    takes: SmallVec<[Take<'a>; 2]>,
    permit: Option<PermitId>,
}

impl<'a> Plan<'a> {
    /// A plan of these takes. Costs on the same counter are merged; no takes at all pass always.
    ///
    /// # Errors
    /// More than [`MAX_TAKES`], or one counter taken under two modes or two sets of numbers.
    pub fn new(takes: impl IntoIterator<Item = Take<'a>>) -> Result<Self, PlanError> {
        let mut merged: SmallVec<[Take<'a>; 2]> = SmallVec::new();
        for take in takes {
            let same = |other: &&mut Take<'a>| {
                other.key.subject == take.key.subject
                    && other.key.limit.has_same_identity(take.key.limit)
            };
            let is_full = merged.len() == MAX_TAKES;
            match merged.iter_mut().find(same) {
                Some(earlier)
                    if (earlier.mode, earlier.distribution) != (take.mode, take.distribution)
                        || earlier.key != take.key =>
                {
                    return Err(PlanError::at(PlanErrorKind::Conflict, &take.key));
                }
                Some(earlier) => earlier.cost = earlier.cost.saturating_add(take.cost),
                None if is_full => return Err(PlanError::at(PlanErrorKind::TooMany, &take.key)),
                None => merged.push(take),
            }
        }
        Ok(Self { takes: merged, permit: None })
    }

    /// A plan whose takes are known to be on different counters, and few.
    pub(crate) fn of_distinct(takes: impl IntoIterator<Item = Take<'a>>) -> Self {
        Self { takes: takes.into_iter().collect(), permit: None }
    }

    /// Its takes, each on a counter of its own.
    #[must_use]
    pub fn takes(&self) -> &[Take<'a>] {
        &self.takes
    }

    /// The same plan, whose slots are held by this permit. Without one they only return by themselves.
    /// See [`Permit`](crate::Permit).
    #[must_use]
    pub fn with_permit(self, permit: PermitId) -> Self {
        Self { permit: Some(permit), ..self }
    }

    /// The same plan, whose slots are held by this permit, if by any.
    pub(crate) fn held_by(self, permit: Option<PermitId>) -> Self {
        Self { permit, ..self }
    }

    /// The same plan with some of its takes.
    #[cfg(feature = "policy")]
    pub(crate) fn only(mut self, mut is_kept: impl FnMut(&Take<'a>) -> bool) -> Self {
        self.takes.retain(|take| is_kept(take));
        self
    }

    /// Sets the behaviour on store loss of every take.
    #[cfg(feature = "policy")]
    pub(crate) fn with_on_store_loss(mut self, on_store_loss: OnStoreLoss) -> Self {
        for take in &mut self.takes {
            take.distribution.on_store_loss = on_store_loss;
        }
        self
    }

    /// Whether none of its takes may refuse.
    pub(crate) fn is_shadow_only(&self) -> bool {
        self.takes.iter().all(|take| take.mode != Mode::Enforce)
    }

    /// By which permit its slots are held.
    #[must_use]
    pub const fn permit(&self) -> Option<PermitId> {
        self.permit
    }

    /// Whether it takes slots, so that a permit is worth having.
    #[must_use]
    pub fn holds_slots(&self) -> bool {
        self.takes.iter().any(Take::holds_slots)
    }
}

/// Why takes cannot make a plan.
///
/// ```
/// use tollgate::{Key, Limit, Plan, PlanErrorKind, Quota, Subject, Take};
///
/// let limit = Limit::token_bucket(Quota::per_minute(10))?;
/// let subject = Subject::of(["c1"]);
/// let take = Take::new(Key::new(&subject, &limit), 1);
/// let error = Plan::new([take, take.shadow(1)]).unwrap_err();
/// assert_eq!(error.kind(), PlanErrorKind::Conflict);
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct PlanError {
    kind: PlanErrorKind,
    reason: String,
}

/// What a [`PlanError`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanErrorKind {
    /// More than [`MAX_TAKES`].
    TooMany,
    /// One counter under two modes or two sets of numbers.
    Conflict,
}

impl PlanError {
    fn at(kind: PlanErrorKind, key: &Key<'_>) -> Self {
        let reason = match kind {
            PlanErrorKind::TooMany => {
                format!("a plan may have at most {MAX_TAKES} takes; the next is at key {key}")
            }
            PlanErrorKind::Conflict => {
                format!("one counter is taken under two modes or two sets of numbers, at key {key}")
            }
        };
        Self { kind, reason }
    }

    /// The limits of several rules of a policy are too many together.
    #[cfg(feature = "policy")]
    pub(crate) fn too_many_of_rules(rules: &[&str], takes: usize) -> Self {
        let rules = rules.join(", ");
        let reason =
            format!("a plan may have at most {MAX_TAKES} takes; the rules {rules} have {takes}");
        Self { kind: PlanErrorKind::TooMany, reason }
    }

    /// What was wrong.
    #[must_use]
    pub const fn kind(&self) -> PlanErrorKind {
        self.kind
    }

    /// Always false: the same takes will be wrong again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }
}
