//! The beat: once a second a node looks at what it counted, tells it where nodes share a Redis, and shows it to who
//! watches.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tollgate::policy::{Policy, Rule, RuleMode};
use tollgate::{Clock, Distributed, SystemClock, Timestamp};
use tollgate_redis::{Beat, Directory};
use tracing::debug;

use super::{Condition, Pulse, Snapshot};
use crate::app::App;
use crate::live::Fleet;
use crate::shutdown::Awaited;

const SECOND: Duration = Duration::from_secs(1);
/// All nodes together tell no more than one pulse in so long: many of them do so less often.
const APART: Duration = Duration::from_millis(20);
/// How long what a node says of itself holds, if it tells once a second.
const HOLDS: u32 = 10;

/// What a node remembers between two beats.
struct Beating {
    directory: Option<Directory>,
    /// What was counted when this node last looked, and when it last told.
    seen: Snapshot,
    told: Snapshot,
    fleet: Option<Fleet>,
}

/// Beats until the end, which those who watch are told of.
pub(crate) async fn beat(app: Arc<App>, mut end: Awaited) {
    let seen = Snapshot::of(app.metrics());
    let told = seen.clone();
    let directory = app.backend().redis().map(tollgate_redis::RedisStore::directory);
    let mut beating = Beating { directory, seen, told, fleet: None };
    let mut next = Instant::now() + SECOND;
    loop {
        tokio::select! {
            () = end.wait() => break,
            () = sleep_until(next) => {}
        }
        beating.beat(&app).await;
        // A beat that took long is not made up for.
        next = (next + pause(&app)).max(Instant::now());
    }
    app.live().close();
}

/// The time between two beats.
fn pause(app: &App) -> Duration {
    let nodes = app.backend().fallback().map_or(1, |store| store.nodes().get());
    SECOND.max(APART * nodes)
}

impl Beating {
    async fn beat(&mut self, app: &App) {
        let now = Snapshot::of(app.metrics());
        let current = app.limiter().current();
        let on_trial = |rule: &str| is_on_trial(current.policy(), rule);
        let pulse = now.since(&mem::replace(&mut self.seen, now.clone()), on_trial);
        app.live().add(app.node_id(), SystemClock::new().now(), &pulse);
        let condition = Condition::of(app);
        let told_at = self.tell(app, &now, &condition, on_trial).await;
        if app.live().watchers() == 0 {
            self.fleet = None;
            return;
        }
        let fleet = match told_at {
            Some(at) => self.read_fleet(at).await,
            None => None,
        };
        app.live().show(app, &condition, fleet);
    }

    /// Tells what was counted since it was last told, so that nothing is left out when one beat failed. Tells when
    /// that was, by the clock of Redis.
    async fn tell(
        &mut self,
        app: &App,
        now: &Snapshot,
        condition: &Condition,
        on_trial: impl Fn(&str) -> bool,
    ) -> Option<Timestamp> {
        let directory = self.directory.as_ref().filter(|_| !app.is_alone())?;
        let pulse: Pulse = now.since(&self.told, on_trial);
        let pulse = serde_json::to_string(&pulse).ok()?;
        let state = serde_json::to_string(condition).ok()?;
        let lifetime = pause(app) * HOLDS;
        let beat = Beat { node: app.node_id(), pulse: &pulse, state: &state, lifetime };
        match directory.beat(&beat).await {
            Ok(at) => {
                self.told = now.clone();
                Some(at)
            }
            Err(error) => {
                debug!(reason = %error, "this node's pulse was not told");
                None
            }
        }
    }

    async fn read_fleet(&mut self, now: Timestamp) -> Option<&Fleet> {
        let directory = self.directory.as_ref()?;
        let fleet = self.fleet.take().filter(|fleet| fleet.is_before(now));
        let mut fleet = fleet.unwrap_or_else(|| Fleet::since_long(now));
        match fleet.read(directory, now).await {
            Ok(()) => {
                self.fleet = Some(fleet);
                self.fleet.as_ref()
            }
            Err(error) => {
                debug!(reason = %error, "the fleet's pulses were not read");
                None
            }
        }
    }
}

fn is_on_trial(policy: &Policy, rule: &str) -> bool {
    let is_tried = |rule: &Rule| {
        rule.mode() == RuleMode::Shadow
            || !rule.next().is_empty()
            || rule.distributed() == Distributed::Shadow
    };
    policy.rule(rule).is_some_and(is_tried)
}
