//! Where counters live: in this process, or in a Redis that others share.

use std::time::Duration;

use tollgate::{
    Decision, FallbackStore, Key, Listing, MemoryStore, Page, Permit, Plan, Status, Store,
    StoreError, Timestamp,
};
use tollgate_redis::RedisStore;

/// One of the stores there are. A closed choice, so that a decision on memory costs no more than if
/// there were no other.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one, and it is not moved about")]
pub(crate) enum Backend {
    /// In this process.
    Memory(MemoryStore),
    /// In a Redis, or in this process while that is lost.
    Redis(Box<FallbackStore<RedisStore>>),
}

impl Backend {
    /// The memory, for what only memory has.
    pub(crate) const fn memory(&self) -> Option<&MemoryStore> {
        match self {
            Self::Memory(store) => Some(store),
            Self::Redis(_) => None,
        }
    }

    /// The Redis, for what only a shared store has.
    pub(crate) const fn redis(&self) -> Option<&RedisStore> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(store) => Some(store.store()),
        }
    }

    /// The same with what answers while it is lost.
    pub(crate) const fn fallback(&self) -> Option<&FallbackStore<RedisStore>> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(store) => Some(store),
        }
    }
}

/// Passes each question on. Over a network an allocation is nothing; on memory a small future is much.
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

    async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        forward!(self, list(listing))
    }
}
