//! Permits of responses that are not delivered yet: their slots are released if the client disconnects before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;
use tollgate::{Outcome, Permit};

use crate::node::NodeContext;

/// Attempts to release slots. Releasing twice has no effect, so that a release whose reply was lost may be repeated.
const MAX_ATTEMPTS: u32 = 5;

/// Time between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Releases the slots of a decision when it is dropped, unless its response was delivered.
#[derive(Debug)]
pub(crate) struct UndeliveredPermit {
    node: Arc<NodeContext>,
    permit: Permit,
    is_delivered: AtomicBool,
}

impl UndeliveredPermit {
    /// Returns the guard of an outcome; `None` if it holds no slots.
    pub(super) fn of(node: &Arc<NodeContext>, outcome: &Outcome<'_, '_>) -> Option<Self> {
        let permit = outcome.permit.clone()?;
        let node = Arc::clone(node);
        Some(Self { node, permit, is_delivered: AtomicBool::new(false) })
    }

    /// Records that the client has received the permit, and releases it itself.
    pub(crate) fn set_delivered(&self) {
        self.is_delivered.store(true, Ordering::Release);
    }
}

impl Drop for UndeliveredPermit {
    fn drop(&mut self) {
        if self.is_delivered.load(Ordering::Acquire) {
            return;
        }
        // Without a runtime the process ends, and the slots expire.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(release(Arc::clone(&self.node), self.permit.clone()));
        }
    }
}

async fn release(node: Arc<NodeContext>, permit: Permit) {
    for _ in 0..MAX_ATTEMPTS {
        match node.limiter().release(&permit).await {
            Err(error) if error.is_transient() => sleep(RETRY_INTERVAL).await,
            _ => return,
        }
    }
}
