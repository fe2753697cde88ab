//! A store's settings.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::Address;
use crate::caller::{Caller, Scripting};
use crate::cluster::{Cluster, Means};
use crate::coalesce::Coalescer;
use crate::keys::Keys;
use crate::link::{Link, Patience};
use crate::refusals::Refusals;
use crate::route::Route;
use crate::router::Router;
use crate::script::Programs;
use crate::sentinel::Follower;
use crate::store::{RedisStore, Shared};
use crate::subscription::Listener;
use crate::time::Time;
use crate::watch::Watch;

/// How long anyone waits for an answer unless another time is chosen.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_millis(100);

/// What keys begin with unless another prefix is chosen.
pub const DEFAULT_PREFIX: &str = "rl:";

/// How many may wait for an answer at once unless another number is chosen.
pub const DEFAULT_MAX_WAITING: usize = 10_000;

/// How many refusals are remembered unless another number is chosen.
pub const DEFAULT_MAX_REFUSALS: usize = 16_384;

/// Builds a [`RedisStore`].
///
/// ```
/// use std::time::Duration;
/// use tollgate_redis::{Address, RedisStore};
///
/// let store = RedisStore::builder(Address::local())
///     .prefix("shop:")?
///     .timeout(Duration::from_millis(15))
///     .build();
/// assert_eq!(store.address().to_string(), "redis://127.0.0.1:6379/0");
/// # Ok::<(), tollgate_redis::PrefixError>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct RedisStoreBuilder {
    address: Address,
    prefix: String,
    timeout: Duration,
    max_waiting: usize,
    max_refusals: usize,
    scripting: Scripting,
    time: Time,
}

impl RedisStoreBuilder {
    pub(crate) fn new(address: Address) -> Self {
        Self {
            address,
            prefix: DEFAULT_PREFIX.to_owned(),
            timeout: DEFAULT_TIMEOUT,
            max_waiting: DEFAULT_MAX_WAITING,
            max_refusals: DEFAULT_MAX_REFUSALS,
            scripting: Scripting::default(),
            time: Time::of_server(),
        }
    }

    /// What every key begins with. Deployments with different prefixes share nothing.
    ///
    /// # Errors
    /// A prefix of more than 64 bytes, or with anything but printable ASCII without braces.
    pub fn prefix(self, prefix: impl Into<String>) -> Result<Self, PrefixError> {
        let prefix = prefix.into();
        let is_valid = |byte: u8| byte.is_ascii_graphic() && !b"{}".contains(&byte);
        if prefix.len() > 64 || !prefix.bytes().all(is_valid) {
            return Err(PrefixError);
        }
        Ok(Self { prefix, ..self })
    }

    /// How long anyone waits for an answer, at least a millisecond.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: timeout.max(Duration::from_millis(1)), ..self }
    }

    /// How many may wait for an answer at once, at least one. More are told so without waiting.
    pub fn max_waiting(self, max_waiting: usize) -> Self {
        Self { max_waiting: max_waiting.max(1), ..self }
    }

    /// How many refusals are remembered, so that a refused caller who asks again costs Redis nothing. With
    /// 0 every request is asked.
    pub fn max_refusals(self, max_refusals: usize) -> Self {
        Self { max_refusals, ..self }
    }

    /// How programs reach the server.
    pub fn scripting(self, scripting: Scripting) -> Self {
        Self { scripting, ..self }
    }

    /// A store whose time a test sets. It remembers no refusals, and its keys hardly expire.
    #[cfg(feature = "testing")]
    pub fn clock(self, clock: tollgate::ManualClock) -> Self {
        Self { time: Time::Manual(clock), max_refusals: 0, ..self }
    }

    /// The store. Nothing is sent yet.
    #[must_use]
    pub fn build(self) -> RedisStore {
        let keys = Keys::new(self.prefix);
        let patience = Patience { reply: self.timeout, ..Patience::default() };
        let route = Route::from(&self.address);
        let programs = Arc::new(Programs::new(self.time.source()));
        let router = match self.address.cluster() {
            Some((seeds, tls)) => {
                let login = self.address.login.clone();
                let means = Means { login, tls, patience, programs, scripting: self.scripting };
                Router::Cluster(Arc::new(Cluster::new(seeds, means)))
            }
            None => {
                let link = Link::new(route.clone(), patience);
                let caller = Arc::new(Caller::new(link, programs, self.scripting));
                Router::One(caller, route.sentinels().map(|known| Follower::new(known, patience)))
            }
        };
        let coalescer = Coalescer::new(router, self.time, keys.channel(), self.max_waiting);
        let watch = Watch::new(route, patience, keys.channel());
        let refusals = (self.max_refusals > 0).then(|| Arc::new(Refusals::new(self.max_refusals)));
        if let Some(refusals) = &refusals {
            watch.expect(Arc::clone(refusals) as Arc<dyn Listener>);
        }
        RedisStore::of(Shared {
            watch,
            address: self.address,
            keys,
            patience: self.timeout,
            coalescer: Arc::new(coalescer),
            refusals,
        })
    }
}

/// A prefix that keys cannot have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a key prefix is at most 64 printable ASCII characters, without spaces and braces")]
pub struct PrefixError;

impl PrefixError {
    /// Always false: the same prefix will be wrong again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }
}
