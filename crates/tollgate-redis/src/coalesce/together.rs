//! Plans that are submitted together. An idle lane sends a plan immediately, so the first plan of a group would be sent
//! alone, and the others would wait for its reply. Here they are sent at the end of the poll that submits them.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use super::lane_queue::Urgency;
use super::{Coalescer, Lane};

/// A lane with plans of a group that are not sent yet.
type HeldLane = (Arc<Coalescer>, Lane);

thread_local! {
    /// The lanes of the group that this thread polls; `None` outside of a group.
    static HELD: RefCell<Option<Vec<HeldLane>>> = const { RefCell::new(None) };
}

/// Runs a future that makes several decisions concurrently, such as `join_all` of them: the decisions that it begins in one
/// poll share a call to Redis.
///
/// A call contains at most 128 takes, and no more than Redis answers in time. Decisions beyond that, and those of an
/// overloaded process, need further calls.
///
/// ```
/// use tollgate::{Facts, Limiter, Policy};
/// use tollgate_redis::{RedisStore, together};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let redis = RedisStore::new("redis://localhost".parse()?);
/// let limiter = Limiter::new(redis, Policy::builtin());
/// let (user, team) = (Facts::of([("client", "user:1")])?, Facts::of([("client", "team:7")])?);
/// let checks = async {
///     tokio::join!(async { limiter.check(&user).await }, async { limiter.check(&team).await })
/// };
/// let (user, team) = together(checks).await;
/// println!("{} {}", user?.is_allowed(), team?.is_allowed());
/// # Ok(())
/// # }
/// ```
pub async fn together<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let _group = Group::begin();
        future.as_mut().poll(context)
    })
    .await
}

/// Leaves a new plan in the queue of its lane until the end of the group. Returns false outside of a group.
pub(super) fn hold(coalescer: &Arc<Coalescer>, lane: &Lane) -> bool {
    let hold = |held: &RefCell<Option<Vec<HeldLane>>>| {
        let mut held = held.borrow_mut();
        let Some(lanes) = held.as_mut() else { return false };
        let is_same = |(other, held): &HeldLane| Arc::ptr_eq(other, coalescer) && held == lane;
        if !lanes.iter().any(is_same) {
            lanes.push((Arc::clone(coalescer), lane.clone()));
        }
        true
    };
    // Without thread-local data, the thread ends.
    HELD.try_with(hold).unwrap_or(false)
}

/// One poll of a group. Sends the plans when it is dropped, also if the poll panics.
struct Group {
    /// Whether this group is inside of another one, which sends.
    is_inner: bool,
}

impl Group {
    fn begin() -> Self {
        let begin = |held: &RefCell<Option<_>>| {
            let mut held = held.borrow_mut();
            let is_inner = held.is_some();
            held.get_or_insert_default();
            is_inner
        };
        Self { is_inner: HELD.try_with(begin).unwrap_or(true) }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.is_inner {
            return;
        }
        let lanes = HELD.try_with(RefCell::take).ok().flatten().unwrap_or_default();
        for (coalescer, lane) in lanes {
            coalescer.send_waiting(&lane, None, Urgency::Together);
        }
    }
}
