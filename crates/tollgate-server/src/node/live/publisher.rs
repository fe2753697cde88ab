//! The publisher task: once a second it adds the counts of this node to the live view and publishes a frame to the
//! live streams.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tollgate::{Clock, SystemClock};
use tollgate_redis::{Directory, RedisStore};
use tracing::debug;

use super::Fleet;
use crate::node::NodeContext;
use crate::node::report::{CounterSnapshot, NodeStatus, figures_interval, is_on_trial};
use crate::shutdown::StageWaiter;

const SECOND: Duration = Duration::from_secs(1);

/// State of the publisher between two frames.
struct Publisher {
    /// `None` with the memory store, which is not shared.
    directory: Option<Directory>,
    /// Counters at the last frame.
    counted: CounterSnapshot,
    fleet: Option<Fleet>,
}

/// Runs until shutdown, then ends all live streams.
pub(crate) async fn run(context: Arc<NodeContext>, mut shutdown: StageWaiter) {
    let mut publisher = Publisher {
        directory: context.backend().redis().map(RedisStore::directory),
        counted: CounterSnapshot::of(&context),
        fleet: None,
    };
    let mut next = Instant::now() + SECOND;
    loop {
        tokio::select! {
            () = shutdown.wait() => break,
            () = sleep_until(next) => {}
        }
        publisher.publish(&context).await;
        // Frames missed during a slow one are skipped.
        next = (next + SECOND).max(Instant::now());
    }
    context.live().close();
}

impl Publisher {
    async fn publish(&mut self, context: &NodeContext) {
        let now = CounterSnapshot::of(context);
        let active = context.limiter().active_policy();
        let on_trial = |rule: &str| is_on_trial(active.policy(), rule);
        let report = now.since(&mem::replace(&mut self.counted, now.clone()), on_trial);
        let until = SystemClock::new().now();
        context.live().add(context.node_id(), until, &report);
        context.history().add(until, &report);
        if context.live().watchers() == 0 {
            self.fleet = None;
            return;
        }
        let fleet = self.read_fleet(context).await;
        context.live().publish(context, &NodeStatus::of(context), fleet);
    }

    /// Reads the figures of the fleet; `None` while this node cannot report, because its own figures are missing then.
    async fn read_fleet(&mut self, context: &NodeContext) -> Option<&Fleet> {
        let (directory, now) = (self.directory.as_ref()?, context.live().redis_time()?);
        let fleet = self.fleet.take().filter(|fleet| fleet.can_continue(now));
        let mut fleet = fleet.unwrap_or_else(|| Fleet::new(now));
        match fleet.read(directory, now, figures_interval(context)).await {
            Ok(()) => {
                self.fleet = Some(fleet);
                self.fleet.as_ref()
            }
            Err(error) => {
                debug!(%error, "node reports not read; the live view shows this node only");
                None
            }
        }
    }
}
