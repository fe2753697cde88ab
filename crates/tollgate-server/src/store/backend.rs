//! The store of the server: memory, or Redis with fallback.

use std::time::Duration;

use tollgate::lease::LeaseStats;
use tollgate::reservation::{Draft, FinalCosts, ReservationToken, Reserved, Settled};
use tollgate::{
    BreakerState, Decision, FallbackStore, Key, Listing, MemoryStore, Page, Permit, Plan, Status,
    Store, StoreError, Timestamp,
};
use tollgate_redis::RedisStore;

use super::StoreWatch;

/// The configured store. An enum instead of a trait object, so that a decision in memory needs no dynamic dispatch.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one instance, and it is not moved")]
pub(crate) enum Backend {
    /// Counters in this process.
    Memory(MemoryStore),
    /// Counters in Redis, and in this process in degraded mode.
    Redis(Box<FallbackStore<RedisStore>>),
}

impl Backend {
    /// Returns the memory store, if configured.
    pub(crate) const fn memory(&self) -> Option<&MemoryStore> {
        match self {
            Self::Memory(store) => Some(store),
            Self::Redis(_) => None,
        }
    }

    /// Returns the Redis store, if configured.
    pub(crate) const fn redis(&self) -> Option<&RedisStore> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(store) => Some(store.store()),
        }
    }

    /// Returns the figures of the leases of this node; `None` with the memory store.
    pub(crate) fn lease_stats(&self) -> Option<LeaseStats> {
        self.redis().map(RedisStore::lease_stats)
    }

    /// Returns how much of a key this node has leased from Redis and not spent.
    pub(crate) fn leased(&self, key: &Key<'_>) -> u64 {
        self.redis().map_or(0, |store| store.leased(key))
    }

    /// Returns whether decisions are made without Redis, because it is unavailable.
    pub(crate) fn is_degraded(&self) -> bool {
        self.fallback().is_some_and(|store| store.breaker() != BreakerState::Closed)
    }

    /// Starts in degraded mode, because Redis is unavailable.
    pub(crate) fn start_degraded(&self, watch: &StoreWatch, error: &StoreError) {
        if let Some(store) = self.fallback() {
            store.open_breaker();
            watch.note_loss_at_start(error);
        }
    }

    /// Returns an error if the store is Redis and the breaker is open.
    pub(crate) fn ensure_available(&self) -> Result<(), StoreError> {
        self.fallback().map_or(Ok(()), FallbackStore::ensure_available)
    }

    /// Returns the Redis store with its fallback, if configured.
    pub(crate) const fn fallback(&self) -> Option<&FallbackStore<RedisStore>> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(store) => Some(store),
        }
    }
}

/// Forwards a call. The Redis future is boxed: the allocation is cheap next to a network call, and it keeps the future
/// of the memory store small.
macro_rules! forward {
    ($self:ident, $method:ident($($argument:expr),*)) => {
        match $self {
            Self::Memory(store) => Store::$method(store, $($argument),*).await,
            Self::Redis(store) => Box::pin(Store::$method(&**store, $($argument),*)).await,
        }
    };
}

impl Store for Backend {
    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        forward!(self, take(plan))
    }

    async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        forward!(self, peek(plan))
    }

    async fn refund<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        forward!(self, refund(plan))
    }

    async fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Result<Decision<'a>, StoreError> {
        forward!(self, debit(plan, age))
    }

    async fn pause(&self, key: &Key<'_>, length: Duration) -> Result<(), StoreError> {
        forward!(self, pause(key, length))
    }

    async fn reset(&self, key: &Key<'_>) -> Result<(), StoreError> {
        forward!(self, reset(key))
    }

    async fn release(&self, permit: &Permit) -> Result<bool, StoreError> {
        forward!(self, release(permit))
    }

    async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, StoreError> {
        forward!(self, renew(permit))
    }

    async fn stats<'a>(&self, key: &Key<'a>) -> Result<Status<'a>, StoreError> {
        forward!(self, stats(key))
    }

    async fn reserve<'a>(
        &self,
        plan: &Plan<'a>,
        draft: &Draft,
    ) -> Result<Reserved<'a>, StoreError> {
        forward!(self, reserve(plan, draft))
    }

    async fn settle(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
        finals: &FinalCosts,
    ) -> Result<Option<Settled>, StoreError> {
        forward!(self, settle(token, tenant, finals))
    }

    async fn renew_reservation(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
    ) -> Result<Option<Timestamp>, StoreError> {
        forward!(self, renew_reservation(token, tenant))
    }

    async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        forward!(self, list(listing))
    }
}
