//! Permits: handles of held concurrency slots, with which a holder releases or renews them.

mod text;

pub use text::PermitError;

use crate::algorithm::PermitId;
use crate::decision::Decision;
use crate::plan::{Plan, Take};
use crate::time::Timestamp;

/// Handle of the slots held by one request: an id and the keys of the slots.
///
/// Its text contains all that a store needs to find the slots, so only the holder stores the permit. The
/// format is 32 hexadecimal digits, then `@<identity>{<subject>}` for each key.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Key, Permit, PermitId, Limit, MemoryStore, Plan, Subject, Take};
///
/// let (store, subject) = (MemoryStore::new(), Subject::of(["c1"]));
/// let exports = Limit::concurrency(1, Duration::from_secs(30))?;
/// let plan = Plan::new([Take::new(Key::new(&subject, &exports), 1)])?;
///
/// let plan = plan.with_permit(PermitId::random());
/// let decision = store.take(&plan);
/// let permit = Permit::of(&plan, &decision).ok_or("no slot was free")?;
/// assert!(!store.take(&plan).is_allowed());
///
/// let text = permit.to_string();
/// assert!(text.ends_with("@ndefault/concurrency{:c1}"));
/// assert!(store.release(&text.parse()?));
/// assert!(store.take(&plan).is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    id: PermitId,
    held: Vec<HeldKey>,
}

/// A key of which a permit holds slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldKey {
    identity: String,
    subject: String,
}

impl HeldKey {
    pub(crate) const fn new(identity: String, subject: String) -> Self {
        Self { identity, subject }
    }

    /// Identity of the limit; see [`Limit::identity`](crate::Limit::identity).
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Subject of the key, as escaped text.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }
}

impl Permit {
    /// Creates the permit of the slots that the plan took. Returns `None` if the plan has no permit id or
    /// took no slot.
    #[must_use]
    pub fn of(plan: &Plan<'_>, decision: &Decision<'_>) -> Option<Self> {
        let id = plan.permit()?;
        let held: Vec<HeldKey> = taken(plan, decision)
            .map(|take| HeldKey {
                identity: take.key().limit().identity(),
                subject: take.key().subject().to_owned(),
            })
            .collect();
        (!held.is_empty()).then_some(Self { id, held })
    }

    /// Earliest expiry of the slots that the plan took; `None` if it took no slot.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Key, Permit, PermitId, Limit, MemoryStore, Plan, Subject, Take};
    ///
    /// let (store, subject) = (MemoryStore::new(), Subject::of(["c1"]));
    /// let exports = Limit::concurrency(1, Duration::from_secs(30))?;
    /// let plan = Plan::new([Take::new(Key::new(&subject, &exports), 1)])?;
    /// let plan = plan.with_permit(PermitId::random());
    /// let decision = store.take(&plan);
    /// let expiry = Permit::expires_at(&plan, &decision);
    /// assert_eq!(expiry, Some(decision.at() + Duration::from_secs(30)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn expires_at(plan: &Plan<'_>, decision: &Decision<'_>) -> Option<Timestamp> {
        let shortest = taken(plan, decision).filter_map(|take| take.key().limit().ttl()).min();
        shortest.map(|ttl| decision.at() + ttl)
    }

    /// Creates the permit of these keys; `None` if there are none.
    pub(crate) fn from_parts(id: PermitId, held: Vec<HeldKey>) -> Option<Self> {
        (!held.is_empty()).then_some(Self { id, held })
    }

    /// Id of the permit.
    #[must_use]
    pub const fn id(&self) -> PermitId {
        self.id
    }

    /// Keys of which the permit holds slots.
    #[must_use]
    pub fn held(&self) -> &[HeldKey] {
        &self.held
    }
}

/// Returns the takes that took a slot: the enforced ones, and those of shadow groups that passed.
fn taken<'p, 'a>(
    plan: &'p Plan<'a>,
    decision: &'p Decision<'_>,
) -> impl Iterator<Item = &'p Take<'a>> {
    let takes = plan.takes().iter().filter(|take| take.holds_slots());
    takes.filter(|take| decision.took(take.mode()))
}
