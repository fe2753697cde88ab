//! The settings of a store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio_rustls::rustls::ClientConfig;

use super::node_leases::NodeLeases;
use super::refusal_cache::RefusalCache;
use super::{RedisStore, Shared};
use crate::Address;
use crate::coalesce::Coalescer;
use crate::connection::{Route, Tls};
use crate::keys::Keys;
use crate::link::{Link, LinkLimits};
use crate::router::{Cluster, FailoverWatcher, NodeSettings, Router, Scripting, Server};
use crate::script::Programs;
use crate::subscription::{Listener, SharedSubscription};
use crate::time::Time;

/// Default of [`RedisStoreBuilder::timeout`].
pub const DEFAULT_TIMEOUT: Duration = Duration::from_millis(100);

/// Default of [`RedisStoreBuilder::prefix`].
pub const DEFAULT_PREFIX: &str = "rl:";

/// Default of [`RedisStoreBuilder::max_waiting`].
pub const DEFAULT_MAX_WAITING: usize = 10_000;

/// Default of [`RedisStoreBuilder::max_refusals`].
pub const DEFAULT_MAX_REFUSALS: usize = 16_384;

/// Default of [`RedisStoreBuilder::max_leases`].
pub const DEFAULT_MAX_LEASES: usize = 4096;

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
#[must_use]
pub struct RedisStoreBuilder {
    address: Address,
    tls_config: Option<Arc<ClientConfig>>,
    prefix: String,
    timeout: Duration,
    max_waiting: usize,
    max_refusals: usize,
    max_leases: usize,
    scripting: Scripting,
    time: Time,
}

impl RedisStoreBuilder {
    pub(super) fn new(address: Address) -> Self {
        Self {
            address,
            tls_config: None,
            prefix: DEFAULT_PREFIX.to_owned(),
            timeout: DEFAULT_TIMEOUT,
            max_waiting: DEFAULT_MAX_WAITING,
            max_refusals: DEFAULT_MAX_REFUSALS,
            max_leases: DEFAULT_MAX_LEASES,
            scripting: Scripting::default(),
            time: Time::of_server(),
        }
    }

    /// Sets the prefix of all keys. Deployments with different prefixes share nothing.
    ///
    /// # Errors
    /// The prefix has more than 64 bytes, or a byte that is not printable ASCII, or a brace.
    pub fn prefix(self, prefix: impl Into<String>) -> Result<Self, PrefixError> {
        let prefix = prefix.into();
        let is_valid = |byte: u8| byte.is_ascii_graphic() && !b"{}".contains(&byte);
        if prefix.len() > 64 || !prefix.bytes().all(is_valid) {
            return Err(PrefixError);
        }
        Ok(Self { prefix, ..self })
    }

    /// Sets the maximum time from a request to its reply, at least one millisecond.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: timeout.max(Duration::from_millis(1)), ..self }
    }

    /// Sets the maximum number of requests that wait to be sent, at least one. Further requests fail
    /// immediately.
    pub fn max_waiting(self, max_waiting: usize) -> Self {
        Self { max_waiting: max_waiting.max(1), ..self }
    }

    /// Sets the size of the refusal cache: a refused request that is repeated within one second costs no call
    /// to Redis. 0 disables the cache.
    pub fn max_refusals(self, max_refusals: usize) -> Self {
        Self { max_refusals, ..self }
    }

    /// Sets the maximum number of plans with a [lease](tollgate::lease). Only limits with
    /// [`LeaseSize::Auto`](tollgate::LeaseSize) or a fixed size are leased. 0 disables leases.
    pub fn max_leases(self, max_leases: usize) -> Self {
        Self { max_leases, ..self }
    }

    /// Sets how the server runs Lua programs.
    pub fn scripting(self, scripting: Scripting) -> Self {
        Self { scripting, ..self }
    }

    /// Sets the TLS configuration of `rediss` schemes, in place of `ca`, `cert` and `key` in the URL.
    ///
    /// The parameter `server_name` still applies. The scheme decides whether TLS is used: an address without
    /// `rediss` ignores the configuration.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate_redis::RedisStore;
    /// use tollgate_redis::rustls::{ClientConfig, RootCertStore};
    ///
    /// # fn example(roots: RootCertStore) -> Result<RedisStore, tollgate_redis::AddressError> {
    /// let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    /// let address = "rediss+cluster://a.internal:6380,b.internal:6380".parse()?;
    /// let store = RedisStore::builder(address).tls_config(Arc::new(config)).build();
    /// # Ok(store)
    /// # }
    /// ```
    pub fn tls_config(self, config: Arc<ClientConfig>) -> Self {
        Self { tls_config: Some(config), ..self }
    }

    /// Sets a test clock. Disables the refusal cache and leases; keys hardly expire.
    #[cfg(feature = "testing")]
    pub fn clock(self, clock: tollgate::ManualClock) -> Self {
        Self { time: Time::Manual(clock), max_refusals: 0, max_leases: 0, ..self }
    }

    /// Creates the store. Does not connect yet.
    #[must_use]
    pub fn build(self) -> RedisStore {
        let keys = Keys::new(self.prefix);
        let limits = LinkLimits { reply_timeout: self.timeout, ..LinkLimits::default() };
        let tls = Tls::of(&self.address, self.tls_config);
        let route = Route::new(&self.address, tls.as_ref());
        let programs = Arc::new(Programs::new(self.time.source()));
        let router = match self.address.cluster_seeds() {
            Some(seeds) => {
                let login = self.address.login.clone();
                let scripting = self.scripting;
                let settings = NodeSettings { login, tls, limits, programs, scripting };
                Router::Cluster(Arc::new(Cluster::new(seeds, settings)))
            }
            None => {
                let link = Link::new(route.clone(), limits);
                let server = Arc::new(Server::new(link, programs, self.scripting));
                let sentinels = route.sentinels();
                Router::Single(server, sentinels.map(|all| FailoverWatcher::new(all, limits)))
            }
        };
        let (router, time) = (Arc::new(router), Arc::new(self.time));
        let coalescer = Coalescer::new(
            Arc::clone(&router),
            Arc::clone(&time),
            keys.channel(),
            self.timeout,
            self.max_waiting,
        );
        let events = Arc::new(SharedSubscription::new(route, limits, keys.channel()));
        let refusals =
            (self.max_refusals > 0).then(|| Arc::new(RefusalCache::new(self.max_refusals)));
        if let Some(refusals) = &refusals {
            events.add(Arc::clone(refusals) as Arc<dyn Listener>);
        }
        let leases = (self.max_leases > 0).then(|| NodeLeases::new(self.max_leases));
        if let Some(leases) = &leases {
            events.add(leases.listener());
        }
        RedisStore::of(Shared {
            events,
            address: self.address,
            keys,
            router,
            time,
            coalescer: Arc::new(coalescer),
            refusals,
            leases,
        })
    }
}

impl fmt::Debug for RedisStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStoreBuilder")
            .field("address", &self.address)
            .field("has_tls_config", &self.tls_config.is_some())
            .field("prefix", &self.prefix)
            .field("timeout", &self.timeout)
            .field("max_waiting", &self.max_waiting)
            .field("max_refusals", &self.max_refusals)
            .field("max_leases", &self.max_leases)
            .field("scripting", &self.scripting)
            .finish_non_exhaustive()
    }
}

/// An invalid key prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a key prefix is at most 64 printable ASCII characters, without spaces and braces")]
pub struct PrefixError;

impl PrefixError {
    /// Always false: the same prefix is always invalid.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }
}
