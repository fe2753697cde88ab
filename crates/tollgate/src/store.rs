//! The contract every store keeps: it decides whole plans.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::decision::Decision;
use crate::listing::{Listing, Page};
use crate::permit::Permit;
use crate::plan::{Key, Plan};
use crate::status::Status;
use crate::time::Timestamp;

/// Decides plans and keeps the counters.
///
/// A store decides; it is not asked for counters to be compared by the caller, because between the
/// reading and the writing another caller would fit. One suite of tests runs over every store
/// (`tollgate-testkit`), and defines what these methods mean.
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
    /// Whether every answer is there when it is first asked for, as it is with memory. Who asks such a store need
    /// not make ready to wait.
    const IS_IMMEDIATE: bool = false;

    /// Takes all that the plan wants, or nothing.
    fn take<'a>(
        &self,
        plan: &Plan<'a>,
    ) -> impl Future<Output = Result<Decision<'a>, StoreError>> + Send;

    /// Tells what `take` would answer, and takes nothing.
    fn peek<'a>(
        &self,
        plan: &Plan<'a>,
    ) -> impl Future<Output = Result<Decision<'a>, StoreError>> + Send;

    /// Gives back each take's cost, never above full, and tells the figures after.
    fn refund<'a>(
        &self,
        plan: &Plan<'a>,
    ) -> impl Future<Output = Result<Decision<'a>, StoreError>> + Send;

    /// Takes without asking, as if it had happened `age` ago, down to empty at most, and tells the
    /// figures after.
    fn debit<'a>(
        &self,
        plan: &Plan<'a>,
        age: Duration,
    ) -> impl Future<Output = Result<Decision<'a>, StoreError>> + Send;

    /// Refuses every take from the key for so long. A shorter pause does not end a longer one.
    fn pause(
        &self,
        key: &Key<'_>,
        length: Duration,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Forgets everything recorded for the key.
    fn reset(&self, key: &Key<'_>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Gives back what the permit still holds; true if that was anything. Slots that have returned by
    /// themselves are no longer held.
    fn release(&self, permit: &Permit) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Lets the permit's slots last for their own length from now, and tells when the first of them
    /// returns. All or nothing: none, and nothing has changed, if the permit has lost any of its keys.
    fn renew(
        &self,
        permit: &Permit,
    ) -> impl Future<Output = Result<Option<Timestamp>, StoreError>> + Send;

    /// The figures of one key.
    fn stats<'a>(
        &self,
        key: &Key<'a>,
    ) -> impl Future<Output = Result<Status<'a>, StoreError>> + Send;

    /// A page of the keys in use. A key that is in use throughout a listing is in it.
    fn list(&self, listing: &Listing) -> impl Future<Output = Result<Page, StoreError>> + Send;
}

/// A store behind a pointer is a store.
macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<S: Store> Store for $pointer {
            const IS_IMMEDIATE: bool = S::IS_IMMEDIATE;

            async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
                S::take(self, plan).await
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
        }
    )*};
}

forward!(&S, Arc<S>);

/// Why a store could not decide. Memory never fails.
///
/// ```
/// use tollgate::{StoreError, StoreErrorKind};
///
/// let error = StoreError::new(StoreErrorKind::Timeout, "no answer within 100 ms");
/// assert!(error.is_transient());
/// assert_eq!(error.to_string(), "no answer within 100 ms");
/// ```
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What kind of failure a [`StoreError`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The store could not be reached.
    Unavailable,
    /// The store did not answer in time. The take may have happened.
    Timeout,
    /// What is stored is not ours to read: of another type, or of a newer version.
    Incompatible,
    /// A cursor that this store did not give.
    Cursor,
}

impl StoreError {
    /// A failure of this kind. The message is shown to operators and must hold no secret.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The same failure, with what caused it.
    #[must_use]
    pub fn caused_by(self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// What kind of failure it is.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether asking again later may succeed. That is not leave to send a take again: after a
    /// [`Timeout`](StoreErrorKind::Timeout) it may have happened, and counts as spent.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unavailable | StoreErrorKind::Timeout)
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
