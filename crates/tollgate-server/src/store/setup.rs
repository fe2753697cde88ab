//! Opening the configured store, and the facts about it that the API reports.

use std::sync::Arc;

use tollgate::{FallbackStore, MemoryStore};
use tollgate_redis::{Address, RedisStore};

use crate::error::ServeError;
use crate::settings::{RedisSettings, Settings, StoreChoice};
use crate::store::Backend;
use crate::store::StoreWatch;

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
    /// The server software and version of Redis, if known.
    pub(crate) server: Option<String>,
}

impl StoreSetup {
    /// Opens the configured store. For Redis, connects and checks that the server is usable.
    pub(crate) async fn open(settings: &Settings) -> Result<Self, ServeError> {
        let (kind, why) = (settings.store.kind(), settings.store.why());
        let watch = Arc::default();
        match &settings.store {
            StoreChoice::Memory { .. } => {
                let info = StoreInfo { kind, why, address: None, server: None };
                Ok(Self { backend: memory(settings), info, watch })
            }
            StoreChoice::Redis { address, source } => {
                let store = redis(settings, (**address).clone())?;
                let server = store.connect().await;
                let server =
                    server.map_err(|error| ServeError::new(format!("{source}: {error}")))?;
                let info = StoreInfo {
                    kind,
                    why,
                    address: Some(store.address().to_string()),
                    server: server.map(|server| server.to_string()),
                };
                let store = with_fallback(settings, store, &watch);
                Ok(Self { backend: Backend::Redis(Box::new(store)), info, watch })
            }
        }
    }
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
    watch: &Arc<StoreWatch>,
) -> FallbackStore<RedisStore> {
    let watch = Arc::clone(watch);
    FallbackStore::builder(store)
        .open_after(settings.redis.breaker_failures)
        .open_for(settings.redis.breaker_open)
        .max_distribution(settings.redis.distributed)
        .max_keys(settings.max_keys)
        .at_cap(settings.at_cap)
        .on_event(move |event| watch.on_event(event))
        .build()
}
