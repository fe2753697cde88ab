//! The beat: once a second a node looks at what it counted, tells it where nodes share a Redis, and shows it to who
//! watches.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tollgate::policy::{Policy, Rule, RuleMode};
use tollgate::{Clock, Distributed, SystemClock, Timestamp};
use tollgate_redis::{Directory, OutgoingReport};
use tracing::debug;

use super::{NodeStatus, Snapshot};
use crate::app::App;
use crate::live::Fleet;
use crate::shutdown::StageWaiter;

const SECOND: Duration = Duration::from_secs(1);
/// All nodes together tell no more than one pulse in so long: many of them do so less often, but not for ever.
const APART: Duration = Duration::from_millis(20);
const RAREST: Duration = Duration::from_secs(5);
/// For how many beats what a node says of itself holds.
const HOLDS: u32 = 10;

/// What a node remembers between two beats.
struct Beating {
    directory: Option<Directory>,
    /// What was counted when this node last looked, and when it last told.
    seen: Snapshot,
    told: Snapshot,
    /// What was told without an answer: it is told again as it was, lest it count twice.
    unheard: Option<Untold>,
    /// When it is time to tell, and the clock of Redis when it last was.
    next: Instant,
    told_at: Option<Timestamp>,
    fleet: Option<Fleet>,
}

/// A pulse on its way.
struct Untold {
    number: u64,
    text: String,
    /// What had been counted when it was taken.
    upto: Snapshot,
}

/// Beats until the end, which those who watch are told of.
pub(crate) async fn run(app: Arc<App>, mut end: StageWaiter) {
    let mut beating = Beating::new(&app);
    let mut next = Instant::now() + SECOND;
    loop {
        tokio::select! {
            () = end.wait() => break,
            () = sleep_until(next) => {}
        }
        beating.beat(&app).await;
        // A beat that took long is not made up for.
        next = (next + SECOND).max(Instant::now());
    }
    app.live().close();
}

/// The time between two pulses of a node.
fn pause(app: &App) -> Duration {
    let nodes = app.backend().fallback().map_or(1, |store| store.nodes().get());
    (APART * nodes).clamp(SECOND, RAREST)
}

impl Beating {
    fn new(app: &App) -> Self {
        let seen = Snapshot::of(app.metrics());
        let directory = app.backend().redis().map(tollgate_redis::RedisStore::directory);
        let (told, next) = (seen.clone(), Instant::now());
        Self { directory, seen, told, unheard: None, next, told_at: None, fleet: None }
    }

    async fn beat(&mut self, app: &App) {
        let now = Snapshot::of(app.metrics());
        let current = app.limiter().active_policy();
        let on_trial = |rule: &str| is_on_trial(current.policy(), rule);
        let pulse = now.since(&mem::replace(&mut self.seen, now.clone()), on_trial);
        app.live().add(app.node_id(), SystemClock::new().now(), &pulse);
        let is_shared = self.directory.is_some() && !app.is_degraded();
        let is_watched = app.live().watchers() > 0;
        if !is_watched {
            self.fleet = None;
        }
        if !is_shared && !is_watched {
            return;
        }
        let status = NodeStatus::of(app);
        if !is_shared {
            self.told_at = None;
        } else if Instant::now() >= self.next {
            self.told_at = self.tell(app, now, &status, on_trial).await;
            self.next = Instant::now() + pause(app) - SECOND / 2;
        }
        if is_watched {
            let fleet = match self.told_at {
                Some(at) => self.read_fleet(app, at).await,
                None => None,
            };
            app.live().show(app, &status, fleet);
        }
    }

    /// Tells what was counted since it was last told, so that nothing is left out when one beat failed. Tells when
    /// that was, by the clock of Redis.
    async fn tell(
        &mut self,
        app: &App,
        now: Snapshot,
        status: &NodeStatus,
        on_trial: impl Fn(&str) -> bool,
    ) -> Option<Timestamp> {
        let directory = self.directory.as_ref()?;
        let state = serde_json::to_string(status).ok()?;
        let untold = match self.unheard.take() {
            Some(untold) => untold,
            None => Untold {
                number: SystemClock::new().now().as_micros(),
                text: serde_json::to_string(&now.since(&self.told, on_trial)).ok()?,
                upto: now,
            },
        };
        let beat = OutgoingReport {
            node: app.node_id(),
            number: untold.number,
            figures: &untold.text,
            state: &state,
            lifetime: pause(app) * HOLDS,
        };
        match directory.report(&beat).await {
            Ok(at) => {
                self.told = untold.upto;
                Some(at)
            }
            Err(error) => {
                debug!(reason = %error, "this node's pulse was not told");
                self.unheard = Some(untold);
                None
            }
        }
    }

    async fn read_fleet(&mut self, app: &App, now: Timestamp) -> Option<&Fleet> {
        let directory = self.directory.as_ref()?;
        let fleet = self.fleet.take().filter(|fleet| fleet.is_before(now));
        let mut fleet = fleet.unwrap_or_else(|| Fleet::since_long(now));
        match fleet.read(directory, now, pause(app)).await {
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
