//! Who watches, and what there is to see.

use std::time::Duration;

use crate::decision::Decision;
use crate::policy::Policy;
use crate::query::ResolvedQuery;
use crate::store::StoreError;

/// What is to be done with what a request costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Take it, all or nothing.
    Take,
    /// Tell what a take would be told, and take nothing.
    Peek,
    /// Give it back, never above full.
    Refund,
    /// Take nothing yet but slots, one each: tell whether anything is left, for who pays by [`Debit`](Verb::Debit)
    /// when it is known how much.
    Admit,
    /// Take it without asking, down to empty at most: what has been used already is paid. Slots are not paid for.
    Debit,
}

/// Sees every decision, once.
///
/// What it needs per rule is resolved when a policy is set, not searched for at every decision.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tollgate::{Observation, Observer, Policy};
///
/// #[derive(Debug, Default)]
/// struct Refusals(AtomicU64);
///
/// impl Observer for Refusals {
///     type Handles = ();
///
///     fn resolve(&self, _policy: &Policy) {}
///
///     fn decided(&self, _handles: &(), observed: &Observation<'_, '_>) {
///         if observed.result.is_ok_and(|decision| !decision.is_allowed()) {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
/// ```
pub trait Observer: Send + Sync {
    /// What is resolved for a policy.
    type Handles: Send + Sync + 'static;

    /// Whether it looks at how long decisions took; without, no clock is read for it.
    const IS_TIMED: bool = true;

    /// Prepares for a policy that is about to be set.
    fn resolve(&self, policy: &Policy) -> Self::Handles;

    /// Sees a decision, or that there is none.
    fn decided(&self, handles: &Self::Handles, observed: &Observation<'_, '_>);
}

/// Nobody watches.
impl Observer for () {
    type Handles = ();

    const IS_TIMED: bool = false;

    fn resolve(&self, _policy: &Policy) {}

    fn decided(&self, _handles: &(), _observed: &Observation<'_, '_>) {}
}

/// One decision, as an [`Observer`] sees it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Observation<'o, 'p> {
    /// What was asked.
    pub verb: Verb,
    /// What applied.
    pub applied: &'o ResolvedQuery<'o>,
    /// What the store said.
    pub result: Result<&'o Decision<'p>, &'o StoreError>,
    /// How long it took, planning included; nothing if the observer [is not timed](Observer::IS_TIMED).
    pub took: Duration,
}
