//! Opening the configured store, and the facts about it that the API reports.

use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::timeout;
use tollgate::{FallbackStore, MemoryStore, StoreError, StoreErrorKind};
use tollgate_redis::{Address, RedisStore, ServerInfo};

use crate::error::ServeError;
use crate::events::{EventLog, Sharing};
use crate::settings::{RedisSettings, Settings, StoreChoice};
use crate::store::Backend;
use crate::store::StoreWatch;

/// Maximum time of the first connection.
const MAX_CONNECT: Duration = Duration::from_secs(5);

/// An open store.
#[derive(Debug)]
pub(crate) struct StoreSetup {
    pub(crate) backend: Backend,
    pub(crate) info: StoreInfo,
    /// Records failures and recoveries of the store.
    pub(crate) watch: Arc<StoreWatch>,
}

/// Facts about a store for the API and the log. Contains no secret.
#[derive(Debug)]
pub(crate) struct StoreInfo {
    /// `memory` or `redis`.
    pub(crate) kind: &'static str,
    /// Which setting selected the store.
    pub(crate) why: String,
    /// The address of Redis.
    pub(crate) address: Option<String>,
    /// The server software and version of Redis; `None` if Redis does not report it. Unset until the first connection.
    server: OnceLock<Option<String>>,
}

impl StoreInfo {
    fn new(settings: &Settings, address: Option<String>) -> Self {
        let (kind, why) = (settings.store.kind(), settings.store.why());
        Self { kind, why, address, server: OnceLock::new() }
    }

    /// Returns the server software and version of Redis, if known.
    pub(crate) fn server(&self) -> Option<&str> {
        self.server.get()?.as_deref()
    }

    /// Returns whether Redis has been connected to since the start.
    pub(crate) fn is_server_known(&self) -> bool {
        self.server.get().is_some()
    }

    /// Sets the server software and version of Redis.
    pub(crate) fn set_server(&self, server: Option<&ServerInfo>) {
        // The first one is kept: it is logged, and a later change has no event.
        let _ = self.server.set(server.map(ToString::to_string));
    }
}

impl StoreSetup {
    /// Opens the configured store. For Redis, connects and checks that the server is usable. If it is unavailable, the
    /// store starts in degraded mode, in which limits are divided by `nodes`.
    pub(crate) async fn open(settings: &Settings, nodes: NonZeroU32) -> Result<Self, ServeError> {
        let sharing = match &settings.store {
            StoreChoice::Memory { .. } => Sharing::ThisNode,
            StoreChoice::Redis { .. } => Sharing::AllNodes,
        };
        let watch = Arc::new(StoreWatch::new(Arc::new(EventLog::new(sharing))));
        match &settings.store {
            StoreChoice::Memory { .. } => {
                let info = StoreInfo::new(settings, None);
                Ok(Self { backend: memory(settings), info, watch })
            }
            StoreChoice::Redis { address, source } => {
                let store = redis(settings, (**address).clone())?;
                let info = StoreInfo::new(settings, Some(store.address().to_string()));
                let connected = connect(&store).await;
                let store = with_fallback(settings, store, nodes, &watch);
                let backend = Backend::Redis(Box::new(store));
                match connected {
                    Ok(server) => info.set_server(server.as_ref()),
                    Err(error) if settings.redis.may_start_after(&error) => {
                        backend.start_degraded(&watch, &error);
                    }
                    Err(error) => return Err(ServeError::new(format!("{source}: {error}"))),
                }
                Ok(Self { backend, info, watch })
            }
        }
    }
}

/// Checks that Redis can be used, for a limited time: an address may have many servers that do not reply.
async fn connect(store: &RedisStore) -> Result<Option<ServerInfo>, StoreError> {
    let no_reply = |_| {
        let message = format!("{} did not reply within {MAX_CONNECT:?}", store.address());
        StoreError::new(StoreErrorKind::Unavailable, message)
    };
    timeout(MAX_CONNECT, store.connect()).await.map_err(no_reply)?
}

fn memory(settings: &Settings) -> Backend {
    let builder = MemoryStore::builder().max_keys(settings.max_keys).at_cap(settings.at_cap);
    Backend::Memory(builder.build())
}

fn redis(settings: &Settings, address: Address) -> Result<RedisStore, ServeError> {
    let RedisSettings { timeout, scripting, .. } = settings.redis;
    let builder = RedisStore::builder(address).timeout(timeout).scripting(scripting);
    Ok(builder.prefix(&*settings.redis.prefix).map_err(ServeError::new)?.build())
}

fn with_fallback(
    settings: &Settings,
    store: RedisStore,
    nodes: NonZeroU32,
    watch: &Arc<StoreWatch>,
) -> FallbackStore<RedisStore> {
    let watch = Arc::clone(watch);
    FallbackStore::builder(store)
        .nodes(nodes)
        .open_after(settings.redis.breaker_failures)
        .open_for(settings.redis.breaker_open)
        .max_distribution(settings.redis.distributed)
        .max_keys(settings.max_keys)
        .at_cap(settings.at_cap)
        .on_event(move |event| watch.on_event(event))
        .build()
}
