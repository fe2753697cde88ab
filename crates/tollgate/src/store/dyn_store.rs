//! A store chosen at run time: boxed, and cheap to clone.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::decision::{Decision, Permit, Status};
use crate::lease::{LeaseReply, WantedLease};
use crate::plan::{Key, Plan};
use crate::reservation::{Draft, FinalCosts, Record, ReservationToken, Reserved, Settled};
use crate::store::{Listing, Page, Store, StoreError};
use crate::time::Timestamp;

/// A store of any type behind one type, so that a program picks memory, Redis or a fallback at run time and has
/// no store generics in its own types. Clones share the store.
///
/// Each call costs one allocation and one virtual call more than the store itself.
///
/// ```
/// use tollgate::{DynStore, FallbackStore, KeyedLimiter, Limit, MemoryStore, Quota};
///
/// struct App {
///     logins: KeyedLimiter<DynStore>,
/// }
///
/// # fn redis() -> MemoryStore { MemoryStore::new() }
/// # fn example(is_shared: bool) -> Result<App, tollgate::QuotaError> {
/// let store = if is_shared {
///     DynStore::new(FallbackStore::builder(redis()).build())
/// } else {
///     DynStore::new(MemoryStore::new())
/// };
/// let limit = Limit::token_bucket(Quota::per_minute(10))?.named("login")?;
/// Ok(App { logins: KeyedLimiter::new(store, limit) })
/// # }
/// ```
#[derive(Clone)]
pub struct DynStore(Arc<dyn ObjectSafeStore>);

impl DynStore {
    /// Boxes a store.
    pub fn new(store: impl Store + 'static) -> Self {
        Self(Arc::new(store))
    }
}

impl fmt::Debug for DynStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynStore").finish_non_exhaustive()
    }
}

type BoxFuture<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;
type SettleResult = Result<Option<Settled>, StoreError>;
type RenewResult = Result<Option<Timestamp>, StoreError>;
type LeaseResult = Result<Option<LeaseReply>, StoreError>;

/// Declares the object-safe twin of [`Store`], its implementation for every store, and the way back.
macro_rules! object_safe {
    ($($name:ident $(<$a:lifetime>)? (&$plan:ident: $input:ty $(, $extra:ident: $extra_type:ty)?) -> $output:ty;)*) => {
        trait ObjectSafeStore: Send + Sync {
            $(fn $name<'f $(, $a: 'f)?>(
                &'f self,
                $plan: &'f $input
                $(, $extra: $extra_type)?
            ) -> BoxFuture<'f, $output>;)*

            fn lease<'f, 'a: 'f>(
                &'f self,
                plan: &'f Plan<'a>,
                wanted: &'f WantedLease,
            ) -> BoxFuture<'f, LeaseResult>;

            fn reserve<'f, 'a: 'f>(
                &'f self,
                plan: &'f Plan<'a>,
                draft: &'f Draft,
            ) -> BoxFuture<'f, Result<Reserved<'a>, StoreError>>;

            fn settle<'f>(
                &'f self,
                token: &'f ReservationToken,
                tenant: Option<&'f [u8]>,
                finals: &'f FinalCosts,
            ) -> BoxFuture<'f, SettleResult>;

            fn renew_reservation<'f>(
                &'f self,
                token: &'f ReservationToken,
                tenant: Option<&'f [u8]>,
            ) -> BoxFuture<'f, RenewResult>;

            fn reservation_hint(&self, plan: &Plan<'_>) -> u32;

            fn maintain(&self) -> BoxFuture<'_, ()>;
        }

        impl<S: Store> ObjectSafeStore for S {
            $(fn $name<'f $(, $a: 'f)?>(
                &'f self,
                $plan: &'f $input
                $(, $extra: $extra_type)?
            ) -> BoxFuture<'f, $output> {
                Box::pin(Store::$name(self, $plan $(, $extra)?))
            })*

            fn lease<'f, 'a: 'f>(
                &'f self,
                plan: &'f Plan<'a>,
                wanted: &'f WantedLease,
            ) -> BoxFuture<'f, LeaseResult> {
                Box::pin(Store::lease(self, plan, wanted))
            }

            fn reserve<'f, 'a: 'f>(
                &'f self,
                plan: &'f Plan<'a>,
                draft: &'f Draft,
            ) -> BoxFuture<'f, Result<Reserved<'a>, StoreError>> {
                Box::pin(Store::reserve(self, plan, draft))
            }

            fn settle<'f>(
                &'f self,
                token: &'f ReservationToken,
                tenant: Option<&'f [u8]>,
                finals: &'f FinalCosts,
            ) -> BoxFuture<'f, SettleResult> {
                Box::pin(Store::settle(self, token, tenant, finals))
            }

            fn renew_reservation<'f>(
                &'f self,
                token: &'f ReservationToken,
                tenant: Option<&'f [u8]>,
            ) -> BoxFuture<'f, RenewResult> {
                Box::pin(Store::renew_reservation(self, token, tenant))
            }

            fn reservation_hint(&self, plan: &Plan<'_>) -> u32 {
                Store::reservation_hint(self, plan)
            }

            fn maintain(&self) -> BoxFuture<'_, ()> {
                Box::pin(Store::maintain(self))
            }
        }

        impl Store for DynStore {
            $(async fn $name $(<$a>)? (
                &self,
                $plan: &$input
                $(, $extra: $extra_type)?
            ) -> $output {
                self.0.$name($plan $(, $extra)?).await
            })*

            async fn lease(&self, plan: &Plan<'_>, wanted: &WantedLease) -> LeaseResult {
                self.0.lease(plan, wanted).await
            }

            async fn reserve<'a>(
                &self,
                plan: &Plan<'a>,
                draft: &Draft,
            ) -> Result<Reserved<'a>, StoreError> {
                self.0.reserve(plan, draft).await
            }

            async fn settle(
                &self,
                token: &ReservationToken,
                tenant: Option<&[u8]>,
                finals: &FinalCosts,
            ) -> SettleResult {
                self.0.settle(token, tenant, finals).await
            }

            async fn renew_reservation(
                &self,
                token: &ReservationToken,
                tenant: Option<&[u8]>,
            ) -> RenewResult {
                self.0.renew_reservation(token, tenant).await
            }

            fn reservation_hint(&self, plan: &Plan<'_>) -> u32 {
                self.0.reservation_hint(plan)
            }

            async fn maintain(&self) {
                self.0.maintain().await;
            }
        }
    };
}

object_safe! {
    take<'a>(&plan: Plan<'a>) -> Result<Decision<'a>, StoreError>;
    peek<'a>(&plan: Plan<'a>) -> Result<Decision<'a>, StoreError>;
    refund<'a>(&plan: Plan<'a>) -> Result<Decision<'a>, StoreError>;
    debit<'a>(&plan: Plan<'a>, age: Duration) -> Result<Decision<'a>, StoreError>;
    pause<'a>(&key: Key<'a>, length: Duration) -> Result<(), StoreError>;
    reset<'a>(&key: Key<'a>) -> Result<(), StoreError>;
    release(&permit: Permit) -> Result<bool, StoreError>;
    renew(&permit: Permit) -> Result<Option<Timestamp>, StoreError>;
    stats<'a>(&key: Key<'a>) -> Result<Status<'a>, StoreError>;
    list(&listing: Listing) -> Result<Page, StoreError>;
    adopt_reservation(&record: Record, age: Duration) -> Result<(), StoreError>;
}
