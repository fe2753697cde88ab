//! Looking after a store that may be lost.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tollgate::{Clock, FallbackStore, Store, jittered};

/// Looks after a store about once a second, for as long as somebody else holds it: a lost one is tried, and told
/// what was spent without it when it is back. To be spawned.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::{FallbackStore, MemoryStore};
/// use tollgate_tower::maintain_store;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let shared = MemoryStore::new();
/// let store = Arc::new(FallbackStore::builder(shared).build());
/// let keeper = tokio::spawn(maintain_store(&store));
/// drop(store);
/// # drop(keeper);
/// # }
/// ```
pub fn maintain_store<S, C>(
    store: &Arc<FallbackStore<S, C>>,
) -> impl Future<Output = ()> + Send + use<S, C>
where
    S: Store + 'static,
    C: Clock + 'static,
{
    let store = Arc::downgrade(store);
    async move {
        loop {
            tokio::time::sleep(jittered(Duration::from_secs(1))).await;
            let Some(store) = store.upgrade() else { return };
            store.maintain().await;
        }
    }
}
