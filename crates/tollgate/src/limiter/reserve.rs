//! Reservations of a limiter: reserve an estimate, settle with the actual amounts.

use std::time::Duration;

use sha2::{Digest as _, Sha256};
use smallvec::SmallVec;
use thiserror::Error;

use super::{ActivePolicy, Limiter, LimiterError, Observer, Outcome, ResolvedQuery, resolve};
use crate::algorithm::PermitId;
use crate::decision::OwnedDecision;
use crate::plan::{Plan, Verb};
use crate::query::Query;
use crate::reservation::{
    DEFAULT_RESERVATION_TTL, Draft, FinalCosts, MAX_RESERVATION_TTL, Record, ReservationToken,
    Reserved, Settled,
};
use crate::store::Store;
use crate::time::Timestamp;

/// Maximum length of the id of a reservation, in bytes.
const MAX_ID: usize = 64;

/// How long a reservation lasts, and its id.
///
/// ```
/// use std::time::Duration;
/// use tollgate::ReservationTerms;
///
/// let terms = ReservationTerms::default().ttl(Duration::from_secs(300))?.id("order-17")?;
/// assert!(terms.id("").is_err());
/// # Ok::<(), tollgate::ReserveError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservationTerms {
    ttl: Duration,
    id: Option<Box<str>>,
}

/// 60 seconds, without an id.
impl Default for ReservationTerms {
    fn default() -> Self {
        Self { ttl: DEFAULT_RESERVATION_TTL, id: None }
    }
}

impl ReservationTerms {
    /// Sets how long the reservation holds its slots, by default 60 seconds. It can be settled for one window longer.
    ///
    /// # Errors
    /// Less than a millisecond, or more than a day.
    pub fn ttl(self, ttl: Duration) -> Result<Self, ReserveError> {
        if ttl < Duration::from_millis(1) || ttl > MAX_RESERVATION_TTL {
            return Err(ReserveError::Ttl);
        }
        Ok(Self { ttl, ..self })
    }

    /// Sets an id of the caller. A second reservation with the same id, for the same tenant and key or facts, returns the
    /// first one, and takes nothing.
    ///
    /// # Errors
    /// An empty id, or one of more than 64 bytes.
    pub fn id(self, id: &str) -> Result<Self, ReserveError> {
        if id.is_empty() || id.len() > MAX_ID {
            return Err(ReserveError::Id);
        }
        Ok(Self { id: Some(id.into()), ..self })
    }

    /// Returns whether the caller can repeat the call: the terms have an id.
    #[must_use]
    pub const fn has_id(&self) -> bool {
        self.id.is_some()
    }
}

/// Why a reservation was not made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReserveError {
    /// The limits refuse the estimate.
    #[error("refused by limit {:?} of rule {:?}", .0.limit_name().unwrap_or("none"), .0.rule())]
    Refused(Box<OwnedDecision>),
    /// The id belongs to a reservation with other costs.
    #[error("the id belongs to a reservation with other costs; use another id")]
    IdConflict,
    /// The id is empty or too long.
    #[error("the id must have 1 to 64 bytes")]
    Id,
    /// The time to live is out of range.
    #[error("the time to live must be between 1 millisecond and 1 day")]
    Ttl,
    /// The limiter could not decide.
    #[error(transparent)]
    Limiter(#[from] LimiterError),
}

/// The outcome of a reservation, borrowed from the limiter.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReserveOutcome<'o, 'p> {
    /// The decision about the estimate. For a repeated id, the current state.
    pub outcome: &'o Outcome<'o, 'p>,
    /// The record; `None` if the limits refuse.
    pub record: Option<&'o Record>,
    /// Whether the id had been used before, so that nothing was taken.
    pub is_repeated: bool,
}

impl<S: Store, O: Observer> Limiter<S, O> {
    /// Reserves the costs of a query and passes the outcome to `read`. [`reserve`](Self::reserve) is the simpler form.
    ///
    /// # Errors
    /// The id belongs to a reservation with other costs, the rules cannot form a plan, or the store failed. A refusal is
    /// an outcome here, not an error.
    pub async fn reserve_with<T>(
        &self,
        query: &Query<'_>,
        terms: &ReservationTerms,
        read: impl FnOnce(&ReserveOutcome<'_, '_>) -> T,
    ) -> Result<T, ReserveError> {
        self.reserve_under(&self.active_policy(), (query, terms), read).await
    }

    /// Reserves like [`reserve_with`](Self::reserve_with), under this policy: the one for which the caller collected the
    /// facts, which may have been replaced since.
    ///
    /// # Errors
    /// As [`reserve_with`](Self::reserve_with).
    pub async fn reserve_under<T>(
        &self,
        policy: &ActivePolicy<O::Handles>,
        (query, terms): (&Query<'_>, &ReservationTerms),
        read: impl FnOnce(&ReserveOutcome<'_, '_>) -> T,
    ) -> Result<T, ReserveError> {
        let mut since = self.now();
        let resolved = &resolve(policy, query.into());
        let mut plan = self.plan(resolved)?;
        if plan.holds_slots() {
            plan = plan.with_permit(PermitId::random());
        }
        let draft = draft(policy, query, resolved, terms);
        let (decision, record) = match self.store.reserve(&plan, &draft).await {
            Ok(Reserved::Known(record)) => {
                return self.read_known(resolved, plan, query, &record, read).await;
            }
            Ok(Reserved::Decided(decision, record)) => (Ok(decision), record),
            Err(error) => (Err(error), None),
        };
        self.observe(&mut since, policy, (Verb::Take, resolved), &decision);
        let decision = &decision.map_err(LimiterError::from)?;
        let outcome = &Outcome::new(resolved, &plan, decision);
        Ok(read(&ReserveOutcome { outcome, record: record.as_ref(), is_repeated: false }))
    }

    /// Reads the outcome of a repeated id: the first reservation, and the current state of its limits.
    async fn read_known<T>(
        &self,
        resolved: &ResolvedQuery<'_>,
        plan: Plan<'_>,
        query: &Query<'_>,
        record: &Record,
        read: impl FnOnce(&ReserveOutcome<'_, '_>) -> T,
    ) -> Result<T, ReserveError> {
        if record.costs() != query.costs() {
            return Err(ReserveError::IdConflict);
        }
        let plan = plan.without_costs();
        let peeked = self.store.peek(&plan).await.map_err(LimiterError::from)?;
        let outcome = &Outcome::new(resolved, &plan, &peeked);
        Ok(read(&ReserveOutcome { outcome, record: Some(record), is_repeated: true }))
    }

    /// Settles a reservation with its final amounts. Returns `None` if no reservation has this token, or it is of another
    /// tenant; `tenant: None` does not compare the tenant.
    ///
    /// ```
    /// use tollgate::reservation::FinalCosts;
    /// use tollgate::{Costs, Facts, Limiter, MemoryStore, Policy};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
    /// let facts = Facts::of([("client", "c1")])?;
    /// let token = limiter.reserve(&facts).costs(Costs::requests(40)).await?.detach();
    /// let used = FinalCosts::of(Costs::requests(25));
    /// let settled = limiter.settle(&token, None, &used).await?.ok_or("unknown reservation")?;
    /// assert_eq!((settled.units[0].charged, settled.units[0].refunded), (25, 15));
    /// assert!(limiter.settle(&token, None, &used).await?.is_some_and(|again| again.is_repeated));
    /// assert_eq!(limiter.peek(&facts).await?.remaining(), Some(75));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The store failed.
    pub async fn settle(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
        finals: &FinalCosts,
    ) -> Result<Option<Settled>, LimiterError> {
        Ok(self.store.settle(token, tenant, finals).await?)
    }

    /// Extends a reservation and its slots by its time to live from now. Returns the new expiry, or `None` if the
    /// reservation is unknown, settled, or has lost a slot.
    ///
    /// # Errors
    /// The store failed.
    pub async fn renew_reservation(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
    ) -> Result<Option<Timestamp>, LimiterError> {
        Ok(self.store.renew_reservation(token, tenant).await?)
    }
}

/// Returns the reservation to make for a query.
fn draft<H>(
    policy: &ActivePolicy<H>,
    query: &Query<'_>,
    resolved: &ResolvedQuery<'_>,
    terms: &ReservationTerms,
) -> Draft {
    let tenant = query.tenant(policy.policy().tenant());
    let token = match &terms.id {
        None => ReservationToken::random(),
        Some(id) => ReservationToken::at(place_of(query, &tenant, id)),
    };
    let factors: SmallVec<[u64; 2]> = match resolved {
        ResolvedQuery::Policy(planned) => planned.cost_factors().collect(),
        ResolvedQuery::Inline(_) => SmallVec::new(),
    };
    Draft { token, tenant, ttl: terms.ttl, costs: query.costs().clone(), factors }
}

/// Returns the place of the reservation with this id: equal only for the same tenant and key or facts.
fn place_of(query: &Query<'_>, tenant: &[u8], id: &str) -> u128 {
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    };
    add(id.as_bytes());
    add(tenant);
    match query {
        Query::Inline(inline) => {
            add(b"key");
            add(inline.key().as_bytes());
        }
        Query::ByPolicy(request) => {
            let mut facts: Vec<(&str, &[u8])> = request.facts().iter().collect();
            facts.sort_unstable();
            add(b"facts");
            for (name, value) in facts {
                add(name.as_bytes());
                add(value);
            }
        }
    }
    let digest: [u8; 32] = hash.finalize().into();
    let halves = digest.split_first_chunk::<16>();
    halves.map_or(0, |(first, _)| u128::from_be_bytes(*first))
}
