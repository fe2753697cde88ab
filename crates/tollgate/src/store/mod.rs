//! The store contract: what every store implements, its listings and its errors.

mod dyn_store;
mod listing;

use std::error::Error;
use std::fmt;
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

pub use dyn_store::DynStore;
pub use listing::{Cursor, ListedKey, Listing, Page};

use crate::decision::{Decision, Permit, Status};
use crate::lease::{LeaseReply, WantedLease};
use crate::plan::{Key, Plan};
use crate::reservation::{Draft, FinalCosts, Record, ReservationToken, Reserved, Settled};
use crate::time::Timestamp;

/// Decides plans and keeps the counters.
///
/// A store decides whole plans. It does not return counters for the caller to compare, because another caller
/// could take the same quota between reading and writing. One conformance suite (`tollgate-testkit`) runs over
/// every store and defines what these methods mean.
///
/// The futures need no particular runtime.
///
/// ```
/// use tollgate::{Decision, Plan, Store, StoreError};
///
/// async fn admit<'a>(store: &impl Store, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
///     store.take(plan).await
/// }
/// ```
pub trait Store: Send + Sync {
    /// Whether every future is ready at its first poll, as those of the memory store are. Callers of such a store
    /// can skip the preparations for waiting.
    const IS_IMMEDIATE: bool = false;

    /// Takes everything in the plan, or nothing.
    fn take<'a>(
        &self,
        plan: &Plan<'a>,
    ) -> impl Future<Output = Result<Decision<'a>, StoreError>> + Send;

    /// Takes `cost` from one enforced limit without a future, or returns `None` if the store cannot: then the caller
    /// calls [`take`](Self::take). Returns the status that `take` would for a limit without slots, and the time of the
    /// decision. For stores that [reply in one poll](Self::IS_IMMEDIATE) and cannot fail.
    ///
    /// ```
    /// use tollgate::{Key, Limit, MemoryStore, Quota, Store, Subject};
    ///
    /// let limit = Limit::fixed_window(Quota::per_minute(10))?;
    /// let subject = Subject::of(["c1"]);
    /// let key = Key::new(&subject, &limit);
    /// let taken = MemoryStore::new().take_one_now(&key, 3);
    /// assert_eq!(taken.map(|(status, _)| status.remaining()), Some(7));
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    fn take_one_now<'k>(&self, key: &Key<'k>, cost: u64) -> Option<(Status<'k>, Timestamp)> {
        let _ = (key, cost);
        None
    }

    /// Returns what `take` would return and consumes nothing.
    fn peek<'a>(
        &self,
        plan: &Plan<'a>,
    ) -> impl Future<Output = Result<Decision<'a>, StoreError>> + Send;

    /// Returns each take's cost to its limit, never above full. The decision shows the state after the refund.
    fn refund<'a>(
        &self,
        plan: &Plan<'a>,
    ) -> impl Future<Output = Result<Decision<'a>, StoreError>> + Send;

    /// Takes even if a limit is exceeded, as if the take had happened `age` ago, down to empty. The decision shows
    /// the state after the debit.
    fn debit<'a>(
        &self,
        plan: &Plan<'a>,
        age: Duration,
    ) -> impl Future<Output = Result<Decision<'a>, StoreError>> + Send;

    /// Refuses every take from the key for `length`. A shorter pause does not end a longer one.
    fn pause(
        &self,
        key: &Key<'_>,
        length: Duration,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Deletes the state of the key.
    fn reset(&self, key: &Key<'_>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Releases the slots that the permit still holds. Returns whether it held any; expired slots are no longer
    /// held.
    fn release(&self, permit: &Permit) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Extends the permit's slots by their time to live from now, all or nothing. Returns when the first of them
    /// expires, or `None`, with nothing changed, if the permit lost a slot.
    fn renew(
        &self,
        permit: &Permit,
    ) -> impl Future<Output = Result<Option<Timestamp>, StoreError>> + Send;

    /// Returns the status of one key.
    fn stats<'a>(
        &self,
        key: &Key<'a>,
    ) -> impl Future<Output = Result<Status<'a>, StoreError>> + Send;

    /// Returns a page of the keys in use. A key that is in use throughout a listing is part of it.
    fn list(&self, listing: &Listing) -> impl Future<Output = Result<Page, StoreError>> + Send;

    /// Leases amounts for all limits of the plan, or takes the costs of the request from all, or nothing. Returns
    /// `None`, with nothing taken, if the store cannot lease this plan: by default, no store can. See
    /// [`lease`](crate::lease).
    fn lease(
        &self,
        _plan: &Plan<'_>,
        _wanted: &WantedLease,
    ) -> impl Future<Output = Result<Option<LeaseReply>, StoreError>> + Send {
        ready(Ok(None))
    }

    /// Takes the plan, as [`take`](Self::take) does, and keeps a record of it, in one call. If a record has the place of
    /// the draft's token, returns it and takes nothing. The record ends with the time to live and the longest window
    /// of the plan. By default, a store has no reservations.
    fn reserve<'a>(
        &self,
        _plan: &Plan<'a>,
        _draft: &Draft,
    ) -> impl Future<Output = Result<Reserved<'a>, StoreError>> + Send {
        ready(Err(StoreError::without_reservations()))
    }

    /// Settles the reservation of a token, once: gives back what was not used, takes what was used more, and releases
    /// its slots. A repeated settlement changes nothing and returns the first outcome. Returns `None` if no record
    /// has the token, or it is of another tenant.
    fn settle(
        &self,
        _token: &ReservationToken,
        _tenant: Option<&[u8]>,
        _finals: &FinalCosts,
    ) -> impl Future<Output = Result<Option<Settled>, StoreError>> + Send {
        ready(Err(StoreError::without_reservations()))
    }

    /// Extends a reservation and its slots by its time to live from now. Returns the new expiry, or `None` if the
    /// reservation is unknown, settled, or has lost a slot.
    fn renew_reservation(
        &self,
        _token: &ReservationToken,
        _tenant: Option<&[u8]>,
    ) -> impl Future<Output = Result<Option<Timestamp>, StoreError>> + Send {
        ready(Err(StoreError::without_reservations()))
    }

    /// Keeps the record of a reservation that another store has granted `age` ago and whose takes this store has counted
    /// meanwhile, so that it can be settled here. No effect if there is a record in its place.
    fn adopt_reservation(
        &self,
        _record: &Record,
        _age: Duration,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        ready(Err(StoreError::without_reservations()))
    }

    /// Returns the hint that the token of a reservation needs, so that this store finds its record; see
    /// [`ReservationToken::with_hint`].
    fn reservation_hint(&self, _plan: &Plan<'_>) -> u32 {
        0
    }

    /// Does the store's periodic work, such as probing a lost store. Call it about once a second. Does nothing
    /// for stores that need none.
    fn maintain(&self) -> impl Future<Output = ()> + Send {
        ready(())
    }
}

/// Implements [`Store`] for pointers to stores.
macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<S: Store> Store for $pointer {
            const IS_IMMEDIATE: bool = S::IS_IMMEDIATE;

            async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
                S::take(self, plan).await
            }
            fn take_one_now<'k>(
                &self,
                key: &Key<'k>,
                cost: u64,
            ) -> Option<(Status<'k>, Timestamp)> {
                S::take_one_now(self, key, cost)
            }
            async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
                S::peek(self, plan).await
            }
            async fn refund<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
                S::refund(self, plan).await
            }
            async fn debit<'a>(
                &self,
                plan: &Plan<'a>,
                age: Duration,
            ) -> Result<Decision<'a>, StoreError> {
                S::debit(self, plan, age).await
            }
            async fn pause(&self, key: &Key<'_>, length: Duration) -> Result<(), StoreError> {
                S::pause(self, key, length).await
            }
            async fn reset(&self, key: &Key<'_>) -> Result<(), StoreError> {
                S::reset(self, key).await
            }
            async fn release(&self, permit: &Permit) -> Result<bool, StoreError> {
                S::release(self, permit).await
            }
            async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, StoreError> {
                S::renew(self, permit).await
            }
            async fn stats<'a>(&self, key: &Key<'a>) -> Result<Status<'a>, StoreError> {
                S::stats(self, key).await
            }
            async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
                S::list(self, listing).await
            }
            async fn lease(
                &self,
                plan: &Plan<'_>,
                wanted: &WantedLease,
            ) -> Result<Option<LeaseReply>, StoreError> {
                S::lease(self, plan, wanted).await
            }
            async fn reserve<'a>(
                &self,
                plan: &Plan<'a>,
                draft: &Draft,
            ) -> Result<Reserved<'a>, StoreError> {
                S::reserve(self, plan, draft).await
            }
            async fn settle(
                &self,
                token: &ReservationToken,
                tenant: Option<&[u8]>,
                finals: &FinalCosts,
            ) -> Result<Option<Settled>, StoreError> {
                S::settle(self, token, tenant, finals).await
            }
            async fn renew_reservation(
                &self,
                token: &ReservationToken,
                tenant: Option<&[u8]>,
            ) -> Result<Option<Timestamp>, StoreError> {
                S::renew_reservation(self, token, tenant).await
            }
            async fn adopt_reservation(
                &self,
                record: &Record,
                age: Duration,
            ) -> Result<(), StoreError> {
                S::adopt_reservation(self, record, age).await
            }
            fn reservation_hint(&self, plan: &Plan<'_>) -> u32 {
                S::reservation_hint(self, plan)
            }
            async fn maintain(&self) {
                S::maintain(self).await;
            }
        }
    )*};
}

forward!(&S, Arc<S>);

/// A store failure: the store could not decide. The memory store never fails.
///
/// ```
/// use tollgate::{StoreError, StoreErrorKind};
///
/// let error = StoreError::new(StoreErrorKind::Timeout, "no reply within 100 ms");
/// assert!(error.is_transient());
/// assert_eq!(error.to_string(), "no reply within 100 ms");
/// ```
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The kind of a [`StoreError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The store is unreachable or refused the call. Nothing has happened.
    Unavailable,
    /// The store rejects this client or cannot be used: wrong credentials, an invalid certificate, an unsupported
    /// version or role. Nothing has happened. Calls fail until an operator changes a setting.
    Misconfigured,
    /// The connection was lost during the call. The take may have happened.
    Lost,
    /// The store did not reply in time. The take may have happened.
    Timeout,
    /// Too many calls of this process wait for a store that replies. The call was not sent.
    Overloaded,
    /// The stored value has another type or a newer format version.
    Incompatible,
    /// The cursor was not issued by this store.
    Cursor,
    /// The store does not have this operation.
    Unsupported,
}

impl StoreError {
    /// Creates an error. The message is shown to operators and must contain no secret.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    fn without_reservations() -> Self {
        Self::new(StoreErrorKind::Unsupported, "this store has no reservations")
    }

    /// Adds the underlying error.
    #[must_use]
    pub fn caused_by(self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// The kind of failure.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Returns whether a later call may succeed. This does not mean that a take may be sent again: see
    /// [`may_have_run`](Self::may_have_run).
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        use StoreErrorKind::{Lost, Misconfigured, Overloaded, Timeout, Unavailable};
        matches!(self.kind, Unavailable | Misconfigured | Lost | Timeout | Overloaded)
    }

    /// Returns whether the call may have had an effect. A take that may have run counts as spent; a call that may
    /// have run must not be sent again.
    ///
    /// ```
    /// use tollgate::{StoreError, StoreErrorKind};
    ///
    /// assert!(StoreError::new(StoreErrorKind::Timeout, "no reply").may_have_run());
    /// assert!(!StoreError::new(StoreErrorKind::Unavailable, "connection refused").may_have_run());
    /// ```
    #[must_use]
    pub const fn may_have_run(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Lost | StoreErrorKind::Timeout)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}
