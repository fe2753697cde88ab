//! Timers of the model checker, with the interface of Tokio.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::Instant;
pub(crate) use tollgate::models::shuttle::thread_local;
pub(crate) use tollgate::models::sync::{Handle, Mutex, MutexGuard, atomic, timeout_at};

/// A timer that never fires: the deadlines of a link are not modelled, those of callers are.
#[derive(Debug)]
pub(crate) struct Sleep;

pub(crate) const fn sleep_until(_: Instant) -> Sleep {
    Sleep
}

impl Sleep {
    pub(crate) fn reset(self: Pin<&mut Self>, _: Instant) {}
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}
