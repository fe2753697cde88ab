//! Permits: what a holder of slots shows to give them back or to keep them longer.

mod text;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU128;

pub use text::PermitError;

use crate::decision::Decision;
use crate::plan::{Plan, Take};
use crate::time::Timestamp;

/// Whose slots they are. Never zero, which stands for nobody.
///
/// ```
/// use tollgate::PermitId;
///
/// assert_ne!(PermitId::random(), PermitId::random());
/// assert_eq!(PermitId::from_u128(7).map(PermitId::as_u128), Some(7));
/// assert_eq!(PermitId::from_u128(0), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PermitId(NonZeroU128);

impl PermitId {
    /// An id that nobody else has, and that strangers do not guess: hashes under keys that the
    /// standard library draws from the operating system.
    #[must_use]
    pub fn random() -> Self {
        let keys = RandomState::new();
        let [high, low] = [0u8, 1].map(|half| u128::from(keys.hash_one(half)));
        Self(NonZeroU128::new(high << 64 | low).unwrap_or(NonZeroU128::MIN))
    }

    /// The id of this number; none for zero.
    #[must_use]
    pub const fn from_u128(number: u128) -> Option<Self> {
        match NonZeroU128::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// Its number.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        self.0.get()
    }
}

/// As 32 hexadecimal digits.
impl fmt::Display for PermitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The slots that one take got: an id, and the keys it holds slots of.
///
/// Its text holds all that a store needs to find them, so nobody has to remember permits but their
/// holders: `<32 hex digits>`, then `@<scope>{<subject>}` for each key.
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
/// let permit = Permit::of(&plan, &decision).ok_or("a slot was free")?;
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

/// A key that a permit holds slots of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldKey {
    scope: String,
    subject: String,
}

impl HeldKey {
    /// Of which limit, as [`Limit::identity`](crate::Limit::identity) writes it.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.scope
    }

    /// Whose, as escaped text.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }
}

impl Permit {
    /// The permit of the slots that were taken by this plan, which was so decided; none if the plan has
    /// no permit id or took no slot.
    #[must_use]
    pub fn of(plan: &Plan<'_>, decision: &Decision<'_>) -> Option<Self> {
        let id = plan.permit()?;
        let held: Vec<HeldKey> = taken(plan, decision)
            .map(|take| HeldKey {
                scope: take.key().limit().identity(),
                subject: take.key().subject().to_owned(),
            })
            .collect();
        (!held.is_empty()).then_some(Self { id, held })
    }

    /// When the first of the slots that were so taken returns by itself; none if no slot was taken.
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

    /// Whose slots they are.
    #[must_use]
    pub const fn id(&self) -> PermitId {
        self.id
    }

    /// The keys it holds slots of.
    #[must_use]
    pub fn held(&self) -> &[HeldKey] {
        &self.held
    }
}

/// The takes that really took a slot: the enforced, and those of shadow groups that passed as a whole.
fn taken<'p, 'a>(
    plan: &'p Plan<'a>,
    decision: &'p Decision<'_>,
) -> impl Iterator<Item = &'p Take<'a>> {
    let takes = plan.takes().iter().filter(|take| take.holds_slots());
    takes.filter(|take| decision.took(take.mode()))
}
