//! The Redis store.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tollgate::algorithm::Reply as StepReply;
use tollgate::lease::{LeaseReply, WantedLease};
use tollgate::reservation::{Draft, FinalCosts, Record, ReservationToken, Reserved, Settled};
use tollgate::{
    Decision, Key, Listing, Mode, Page, Permit, Plan, Status, Store, StoreError, Timestamp,
};

use crate::call::{self, EncodedTake, Verb};
use crate::coalesce::Coalescer;
use crate::failure::Failure;
use crate::keys::Keys;
use crate::router::Router;
use crate::subscription::SharedSubscription;
use crate::time::Time;
use crate::{Address, AddressError, Directory, ServerInfo};

mod builder;
mod cross_node;
mod eviction;
mod list;
mod node_call;
mod node_leases;
mod refusal_cache;
mod reservations;

pub use builder::{
    DEFAULT_MAX_LEASES, DEFAULT_MAX_REFUSALS, DEFAULT_MAX_WAITING, DEFAULT_PREFIX, DEFAULT_TIMEOUT,
    PrefixError, RedisStoreBuilder,
};
use node_leases::NodeLeases;
use refusal_cache::RefusalCache;

type Takes = SmallVec<[EncodedTake; 2]>;

/// Maximum pause: 100 years. The end of a longer one could exceed 2^53 microseconds.
const MAX_PAUSE: Duration = Duration::from_secs(36_525 * 86_400);

/// A [`Store`] in Redis, shared by all processes that use the same server and key prefix.
///
/// A script in Redis decides, in at most one call per decision: atomic under any concurrency, on the server's
/// clock. On a cluster, a plan whose keys are on one node is atomic; a plan over several nodes is taken node by node,
/// and refunded if a later node refuses. A clone shares the same connections. The store needs a Tokio runtime with I/O and time enabled.
///
/// # Opening a store
/// All ways connect on the first request. [`connect`](Self::connect) checks the servers earlier.
///
/// From a URL:
///
/// ```no_run
/// use tollgate::{Key, Limit, Plan, Quota, Store, Subject, Take};
/// use tollgate_redis::RedisStore;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let store = RedisStore::from_url("redis://localhost:6379/0")?;
/// store.connect().await?;
///
/// let limit = Limit::sliding_window(Quota::per_second(4))?;
/// let igdb = Subject::of(["igdb:api"]);
/// let plan = Plan::new([Take::new(Key::new(&igdb, &limit), 1)])?;
/// if let Some(wait) = store.take(&plan).await?.retry_after() {
///     println!("retry in {wait:?}");
/// }
/// # Ok(())
/// # }
/// ```
///
/// From an existing [`Address`], here of the environment variable `REDIS_URL`:
///
/// ```
/// use tollgate_redis::{Address, RedisStore};
///
/// let address = Address::from_env()?;
/// let store = RedisStore::new(address);
/// # Ok::<(), tollgate_redis::AddressError>(())
/// ```
///
/// With a TLS configuration of the program, see [`RedisStoreBuilder::tls_config`]:
///
/// ```
/// use std::sync::Arc;
/// use tollgate_redis::RedisStore;
/// use tollgate_redis::rustls::{ClientConfig, RootCertStore};
///
/// # fn example(roots: RootCertStore) -> Result<RedisStore, tollgate_redis::AddressError> {
/// let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
/// let address = "rediss://cache.internal:6380".parse()?;
/// let store = RedisStore::builder(address).tls_config(Arc::new(config)).build();
/// # Ok(store)
/// # }
/// ```
///
/// # Why it has its own client
/// The store does not accept a connection of another Redis client, because it depends on these guarantees:
///
/// - **A take is never sent twice.** Once the socket has accepted a byte of a take, the take may have run. If its
///   reply is lost, it counts as spent and the caller gets a [`StoreError`]. It is sent again only if the server
///   replies that it has not run (an unknown script, a redirection in a cluster). General clients resend after a
///   reconnect or a redirection, which would count a request twice.
/// - **Coalescing.** Plans that arrive while a call is in flight are sent together in the next script call. This
///   needs control over when a command leaves.
/// - **Timeouts that include the queue.** The time limit of a request begins when it is queued. An expired or
///   cancelled request that was not sent is dropped and takes nothing. Only a cancelled debit is sent anyway.
#[derive(Debug, Clone)]
pub struct RedisStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    address: Address,
    keys: Keys,
    router: Arc<Router>,
    time: Arc<Time>,
    coalescer: Arc<Coalescer>,
    refusals: Option<Arc<RefusalCache>>,
    leases: Option<NodeLeases>,
    events: Arc<SharedSubscription>,
}

impl RedisStore {
    /// Creates a store with default settings. Does not connect yet.
    #[must_use]
    pub fn new(address: Address) -> Self {
        Self::builder(address).build()
    }

    /// Creates a store with default settings from a URL, see [`Address`]. Does not connect yet.
    ///
    /// # Errors
    /// The URL is not a valid address. The message does not repeat any part of it.
    pub fn from_url(url: &str) -> Result<Self, AddressError> {
        url.parse().map(Self::new)
    }

    /// Returns a builder for a store with other settings.
    pub fn builder(address: Address) -> RedisStoreBuilder {
        RedisStoreBuilder::new(address)
    }

    fn of(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }

    /// Checks that the servers can be reached and used. Returns their software and version, if they report it.
    ///
    /// # Errors
    /// A server cannot be used. The reason is one line without secrets.
    pub async fn connect(&self) -> Result<Option<ServerInfo>, StoreError> {
        self.shared.router.open().await.map_err(Failure::into_store_error)
    }

    /// Returns the cluster nodes that refuse keys of several slots in one call, as `host:port`. Each slot of such a
    /// node gets calls of its own, which cost more. Empty without a cluster.
    ///
    /// ```
    /// use tollgate_redis::RedisStore;
    ///
    /// let store = RedisStore::from_url("redis+cluster://a.internal:6379")?;
    /// assert!(store.nodes_without_batching().is_empty());
    /// # Ok::<(), tollgate_redis::AddressError>(())
    /// ```
    #[must_use]
    pub fn nodes_without_batching(&self) -> Vec<String> {
        self.shared.router.nodes_without_batching()
    }

    /// Returns the address of the servers. Its text form hides the login.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.shared.address
    }

    /// Returns the directory: nodes, overrides, audit and change events.
    #[must_use]
    pub fn directory(&self) -> Directory {
        let Shared { router, time, keys, events, .. } = &*self.shared;
        Directory::new(Arc::clone(router), Arc::clone(time), keys.clone(), Arc::clone(events))
    }

    async fn decide<'a>(&self, plan: &Plan<'a>, verb: Verb) -> Result<Decision<'a>, StoreError> {
        let time = &self.shared.time;
        if plan.takes().is_empty() {
            return Ok(Decision::new(time.estimate(), []));
        }
        let takes = || call::takes_of(plan, &self.shared.keys, time.estimate());
        let figures = self.shared.figures_across_nodes(verb, takes).await?;
        let pairs = plan.takes().iter().zip(figures.replies);
        let status = |(take, reply): (&tollgate::Take<'a>, StepReply)| {
            Status::new(take.key().limit(), take.mode(), reply)
        };
        Ok(Decision::new(figures.at, pairs.map(status)))
    }

    /// Takes from the store, unless the refusal cache refuses the plan.
    async fn take_from_store<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        match &self.shared.refusals {
            Some(refusals) => self.take_cached(plan, refusals).await,
            None => self.decide(plan, Verb::Take).await,
        }
    }

    /// Takes, unless the refusal cache refuses the plan.
    async fn take_cached<'a>(
        &self,
        plan: &Plan<'a>,
        cache: &RefusalCache,
    ) -> Result<Decision<'a>, StoreError> {
        self.shared.events.start();
        let epoch = match cache.find(plan) {
            Ok(refusal) => return Ok(refusal),
            Err(epoch) => epoch,
        };
        let decision = self.decide(plan, Verb::Take).await?;
        if let Some(epoch) = epoch
            && !decision.is_allowed()
        {
            cache.insert(plan, &decision, &epoch);
        }
        Ok(decision)
    }

    /// Removes the refusals and ends the leases of subjects in this process immediately. Other processes do so on the
    /// published event.
    fn forget(&self, subjects: impl IntoIterator<Item = impl AsRef<str>>) {
        for subject in subjects {
            if let Some(refusals) = &self.shared.refusals {
                refusals.remove(subject.as_ref());
            }
            if let Some(leases) = &self.shared.leases {
                leases.end_subject(subject.as_ref());
            }
        }
    }
}

/// Returns whether every limit of the plan is leased.
fn is_leased(plan: &Plan<'_>) -> bool {
    plan.takes().iter().all(|take| take.key().limit().lease_hold().is_some())
}

impl Store for RedisStore {
    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        if let Some(permit) = plan.permit() {
            return self.decide(plan, Verb::Hold(permit)).await;
        }
        match &self.shared.leases {
            Some(leases) if is_leased(plan) => self.take_leased(plan, leases).await,
            _ => self.take_from_store(plan).await,
        }
    }

    async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.decide(plan, Verb::Peek).await
    }

    async fn refund<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        if is_leased(plan)
            && let Some(refunded) = self.refund_leased(plan)
        {
            return Ok(refunded);
        }
        let decision = self.decide(plan, Verb::Refund).await;
        self.forget(plan.takes().iter().map(|take| take.key().subject()));
        decision
    }

    async fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Result<Decision<'a>, StoreError> {
        self.decide(plan, Verb::Debit { age }).await
    }

    async fn pause(&self, key: &Key<'_>, length: Duration) -> Result<(), StoreError> {
        let now = self.shared.time.estimate();
        let take = call::take_of(key, 0, &self.shared.keys, now);
        let length = length.min(MAX_PAUSE);
        let result = self.shared.number(Verb::Pause { length }, take).await;
        self.forget([key.subject()]);
        result.map(|_| ())
    }

    async fn reset(&self, key: &Key<'_>) -> Result<(), StoreError> {
        let now = self.shared.time.estimate();
        let take = call::take_of(key, 0, &self.shared.keys, now);
        let result = self.shared.number(Verb::Reset, take).await;
        self.forget([key.subject()]);
        result.map(|_| ())
    }

    async fn release(&self, permit: &Permit) -> Result<bool, StoreError> {
        let takes = call::takes_of_permit(permit, &self.shared.keys);
        let released = self.shared.numbers_across_nodes(Verb::Release(permit.id()), takes).await?;
        Ok(released.contains(&1))
    }

    async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, StoreError> {
        let takes = call::takes_of_permit(permit, &self.shared.keys);
        // A cluster renews node by node. So check first that the permit holds all slots.
        if self.shared.router.is_cluster() {
            let verb = Verb::Holds(permit.id());
            if self.shared.numbers_across_nodes(verb, takes.clone()).await?.contains(&0) {
                return Ok(None);
            }
        }
        let expiries = self.shared.numbers_across_nodes(Verb::Renew(permit.id()), takes).await?;
        let earliest = expiries.into_iter().min().and_then(|micros| u64::try_from(micros).ok());
        Ok(earliest.map(Timestamp::from_micros))
    }

    async fn stats<'a>(&self, key: &Key<'a>) -> Result<Status<'a>, StoreError> {
        let time = &self.shared.time;
        let takes =
            || SmallVec::from_iter([call::take_of(key, 0, &self.shared.keys, time.estimate())]);
        let figures = self.shared.figures(Verb::Peek, takes).await?;
        let reply =
            figures.replies.first().ok_or_else(|| Failure::unexpected().into_store_error())?;
        Ok(Status::new(key.limit(), Mode::Enforce, *reply))
    }

    async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        self.shared.list(listing).await
    }

    async fn lease(
        &self,
        plan: &Plan<'_>,
        wanted: &WantedLease,
    ) -> Result<Option<LeaseReply>, StoreError> {
        self.lease_in_store(plan, wanted).await
    }

    async fn reserve<'a>(
        &self,
        plan: &Plan<'a>,
        draft: &Draft,
    ) -> Result<Reserved<'a>, StoreError> {
        self.reserve_in_store(plan, draft).await
    }

    async fn settle(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
        finals: &FinalCosts,
    ) -> Result<Option<Settled>, StoreError> {
        self.settle_in_store(token, tenant, finals).await
    }

    fn reservation_hint(&self, plan: &Plan<'_>) -> u32 {
        self.hint_of(plan)
    }

    async fn adopt_reservation(&self, record: &Record, age: Duration) -> Result<(), StoreError> {
        self.adopt_in_store(record, age).await
    }

    async fn renew_reservation(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
    ) -> Result<Option<Timestamp>, StoreError> {
        self.extend_in_store(token, tenant).await
    }
}
