//! Plans that are submitted together. An idle lane sends a plan immediately, so the first plan of a group would be sent
//! alone, and the others would wait for its reply. Here they are sent at the end of the poll that submits them.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use super::lane_queue::Urgency;
use super::{Coalescer, Lane, QueuedPlan};
use crate::sync::thread_local;

/// Plans of a group for one lane. They are not in the queue of the lane yet, because another thread would send a part of
/// them when a call ends.
struct HeldPlans {
    coalescer: Arc<Coalescer>,
    lane: Lane,
    plans: Vec<QueuedPlan>,
}

thread_local! {
    /// The plans of the group that this thread polls; `None` outside of a group.
    static HELD: RefCell<Option<Vec<HeldPlans>>> = const { RefCell::new(None) };
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

/// Keeps a new plan until the end of the group. Returns the plan outside of a group.
pub(super) fn hold(
    coalescer: &Arc<Coalescer>,
    lane: &Lane,
    plan: QueuedPlan,
) -> Option<QueuedPlan> {
    let mut unheld = Some(plan);
    let hold = |held: &RefCell<Option<Vec<HeldPlans>>>| {
        let mut held = held.borrow_mut();
        let Some(groups) = held.as_mut() else { return };
        let is_same = |group: &&mut HeldPlans| {
            Arc::ptr_eq(&group.coalescer, coalescer) && group.lane == *lane
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.plans.extend(unheld.take()),
            None => groups.push(HeldPlans {
                coalescer: Arc::clone(coalescer),
                lane: lane.clone(),
                plans: unheld.take().into_iter().collect(),
            }),
        }
    };
    // Without thread-local data, the thread ends.
    let _ = HELD.try_with(hold);
    unheld
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
        let groups = HELD.try_with(RefCell::take).ok().flatten().unwrap_or_default();
        for HeldPlans { coalescer, lane, plans } in groups {
            coalescer.send_waiting(&lane, plans, Urgency::Together);
        }
    }
}
