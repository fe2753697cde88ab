//! Observers: every decision is reported to one, for metrics and logs.

use std::time::Duration;

use crate::decision::Decision;
use crate::limiter::ResolvedQuery;
use crate::plan::Verb;
use crate::policy::Policy;
use crate::store::StoreError;

/// Receives every decision of a limiter exactly once.
///
/// Per-rule data, such as metric handles, is resolved when a policy is set, not looked up at every decision.
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
///     fn decided(&self, _handles: &(), observation: &Observation<'_, '_>) {
///         if observation.result.is_ok_and(|decision| !decision.is_allowed()) {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
/// ```
pub trait Observer: Send + Sync {
    /// Data resolved for a policy.
    type Handles: Send + Sync + 'static;

    /// Whether the observer uses [`Observation::took`]. If not, the limiter reads no clock for it.
    const IS_TIMED: bool = true;

    /// Whether the observer uses decisions at all. If not, the limiter may omit [`decided`](Self::decided).
    const IS_ENABLED: bool = true;

    /// Resolves the data for a policy that is about to become active.
    fn resolve(&self, policy: &Policy) -> Self::Handles;

    /// Records a decision or a store failure. Must not block.
    fn decided(&self, handles: &Self::Handles, observation: &Observation<'_, '_>);
}

/// Observes nothing.
impl Observer for () {
    type Handles = ();

    const IS_TIMED: bool = false;
    const IS_ENABLED: bool = false;

    fn resolve(&self, _policy: &Policy) {}

    fn decided(&self, _handles: &(), _observation: &Observation<'_, '_>) {}
}

/// One decision as reported to an [`Observer`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Observation<'o, 'p> {
    /// The verb of the call.
    pub verb: Verb,
    /// The query with the rules or inline limits that apply to it.
    pub query: &'o ResolvedQuery<'o>,
    /// The decision, or the store's failure.
    pub result: Result<&'o Decision<'p>, &'o StoreError>,
    /// The duration of the decision, planning included; zero if the observer [is not timed](Observer::IS_TIMED).
    pub took: Duration,
}
