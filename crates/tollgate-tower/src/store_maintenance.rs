//! Periodic maintenance of a [`FallbackStore`].

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tollgate::{Clock, FallbackStore, Store, jittered};

/// Time between two maintenance runs, before jitter.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);

/// Calls [`FallbackStore::maintain`] about once a second until all other references to the store are dropped. During
/// an outage it probes the store; after it, it debits what was admitted without the store. Spawn the returned future.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::{FallbackStore, MemoryStore};
/// use tollgate_tower::run_store_maintenance;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let shared = MemoryStore::new();
/// let store = Arc::new(FallbackStore::builder(shared).build());
/// let maintenance = tokio::spawn(run_store_maintenance(&store));
/// drop(store);
/// # drop(maintenance);
/// # }
/// ```
pub fn run_store_maintenance<S, C, L>(
    store: &Arc<FallbackStore<S, C, L>>,
) -> impl Future<Output = ()> + Send + use<S, C, L>
where
    S: Store + 'static,
    C: Clock + 'static,
    L: Store + 'static,
{
    let store = Arc::downgrade(store);
    async move {
        loop {
            tokio::time::sleep(jittered(MAINTENANCE_INTERVAL)).await;
            let Some(store) = store.upgrade() else { return };
            store.maintain().await;
        }
    }
}
