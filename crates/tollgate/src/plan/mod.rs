//! A plan: the takes of one request, decided together.

mod distribution;
mod error;
mod verb;

use std::fmt;

use smallvec::SmallVec;

pub use distribution::{Distributed, Distribution, OnStoreLoss};
pub use error::{PlanError, PlanErrorKind};
pub use verb::Verb;

use crate::algorithm::PermitId;
use crate::limit::Limit;
use crate::subject::Subject;

/// The maximum number of takes in a plan.
pub const MAX_TAKES: usize = 16;

/// The identity of one counter: a subject and a limit. Displayed as `{subject}:rule/limit`.
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
    /// Creates the key of a subject and a limit.
    #[must_use]
    pub fn new(subject: &'a Subject, limit: &'a Limit) -> Self {
        Self { subject: subject.as_str(), limit }
    }

    /// Creates the key of an unescaped subject, for a store that no other code writes to.
    pub(crate) const fn private(subject: &'a str, limit: &'a Limit) -> Self {
        Self { subject, limit }
    }

    /// Returns the escaped text of the subject.
    #[must_use]
    pub const fn subject(&self) -> &'a str {
        self.subject
    }

    /// Returns the limit.
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

/// Whether a take can refuse the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// The take refuses the request if the limit is exceeded.
    Enforce,
    /// The take is evaluated and counted but never refuses. The takes of one group are counted all or none, as
    /// they would be if they were enforced.
    Shadow {
        /// The group: the takes of one rule, or of its trial limits.
        group: u16,
    },
}

/// The amount to take from one counter, with its mode.
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
    /// Creates an enforced take. A cost of 0 is a peek.
    #[must_use]
    pub const fn new(key: Key<'a>, cost: u64) -> Self {
        let distribution =
            Distribution { distributed: Distributed::On, on_store_loss: OnStoreLoss::Local };
        Self { key, cost, mode: Mode::Enforce, distribution }
    }

    /// Changes the mode to shadow.
    #[must_use]
    pub const fn shadow(self, group: u16) -> Self {
        Self { mode: Mode::Shadow { group }, ..self }
    }

    /// Sets how the take is distributed between nodes.
    #[must_use]
    pub const fn with_distribution(self, distribution: Distribution) -> Self {
        Self { distribution, ..self }
    }

    /// Returns the key of the counter.
    #[must_use]
    pub const fn key(&self) -> Key<'a> {
        self.key
    }

    /// Returns the cost.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// Returns whether the take can refuse.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns how the take is distributed between nodes.
    #[must_use]
    pub const fn distribution(&self) -> Distribution {
        self.distribution
    }

    /// Returns the same take on another key.
    pub(crate) fn of_key<'k>(&self, key: Key<'k>) -> Take<'k> {
        Take { key, cost: self.cost, mode: self.mode, distribution: self.distribution }
    }

    /// Returns whether the take holds slots, which a permit can release.
    pub(crate) fn holds_slots(&self) -> bool {
        self.cost > 0 && self.key.limit.algorithm().holds_slots()
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
    /// Creates a plan. Takes on the same counter are merged by adding their costs. A plan without takes always
    /// passes.
    ///
    /// # Errors
    /// More than [`MAX_TAKES`] takes, or two takes on one counter that differ in mode, distribution or parameters.
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

    /// Creates a plan from at most [`MAX_TAKES`] takes on different counters, without checking this.
    pub(crate) fn of_distinct(takes: impl IntoIterator<Item = Take<'a>>) -> Self {
        Self { takes: takes.into_iter().collect(), permit: None }
    }

    /// Returns the plan with costs of 0.
    pub(crate) fn without_costs(mut self) -> Self {
        self.takes.iter_mut().for_each(|take| take.cost = 0);
        self
    }

    /// Returns the takes, each on a different counter.
    #[must_use]
    pub fn takes(&self) -> &[Take<'a>] {
        &self.takes
    }

    /// Sets the permit that holds the slots. Without a permit, slots become free only when their `ttl` expires. See
    /// [`Permit`](crate::Permit).
    #[must_use]
    pub fn with_permit(self, permit: PermitId) -> Self {
        Self { permit: Some(permit), ..self }
    }

    /// Sets or removes the permit that holds the slots.
    pub(crate) fn held_by(self, permit: Option<PermitId>) -> Self {
        Self { permit, ..self }
    }

    /// Keeps only the takes for which `is_kept` returns true.
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

    /// Returns whether every take is in shadow mode.
    pub(crate) fn is_shadow_only(&self) -> bool {
        self.takes.iter().all(|take| take.mode != Mode::Enforce)
    }

    /// Returns the permit that holds the slots.
    #[must_use]
    pub const fn permit(&self) -> Option<PermitId> {
        self.permit
    }

    /// Returns whether a take holds slots, so that the plan should have a permit.
    #[must_use]
    pub fn holds_slots(&self) -> bool {
        self.takes.iter().any(Take::holds_slots)
    }
}
