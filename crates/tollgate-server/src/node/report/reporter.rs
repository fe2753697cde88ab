//! The reporter task: once a second it sends the node report to the Redis that nodes share.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::fleet_membership::FleetMembership;
use super::pending_figures::PendingFigures;
use super::{CounterSnapshot, NodeStatus, figures_interval, is_on_trial};
use crate::events::QueuedEvents;
use crate::node::{NodeContext, RedisCopy};
use crate::settings::Settings;
use crate::shutdown::StageWaiter;

/// Lifetime of a published status, in figures intervals.
const STATUS_LIFETIME_INTERVALS: u32 = 10;

/// Sends the reports of this node.
#[derive(Debug)]
pub(crate) struct Reporter {
    /// Time between two reports.
    interval: Duration,
    membership: FleetMembership,
    events: QueuedEvents,
    figures: PendingFigures,
    /// When the next report contains figures.
    next_figures: Instant,
}

impl Reporter {
    /// Registers this node; `None` with the memory store, which is not shared. If Redis is unavailable, the node
    /// serves requests and registers later.
    pub(crate) async fn register(
        context: &NodeContext,
        settings: &Settings,
        copy: Option<Arc<RedisCopy>>,
    ) -> Option<Self> {
        let store = context.backend().fallback()?;
        let mut membership = FleetMembership::new(context, store, &settings.redis, copy);
        if context.is_degraded() {
            // Until Redis answers, the nodes that share the limits are those that count as up.
            context.metrics().note_nodes(store.nodes().get(), 0);
            membership.skip_report(context);
        } else {
            membership.report(context, &[], None).await;
        }
        Some(Self {
            interval: settings.redis.report,
            membership,
            events: QueuedEvents::default(),
            figures: PendingFigures::new(CounterSnapshot::of(context)),
            next_figures: Instant::now(),
        })
    }

    /// Sends reports until shutdown, then removes this node from the directory.
    pub(crate) async fn run(mut self, context: Arc<NodeContext>, mut shutdown: StageWaiter) {
        let mut next = Instant::now() + self.interval;
        loop {
            tokio::select! {
                () = shutdown.wait() => break,
                () = sleep_until(next) => {}
                // At once, so that the other nodes count this node sooner.
                () = context.metrics().store().restored() => next = Instant::now(),
            }
            self.send_report(&context).await;
            // Reports missed during a slow one are skipped.
            next = (next + self.interval).max(Instant::now());
        }
        self.send_last_report(&context).await;
        self.membership.leave().await;
    }

    /// Sends the last counts and events of this node.
    async fn send_last_report(&mut self, context: &NodeContext) {
        if self.membership.is_registered() {
            self.next_figures = Instant::now();
            self.send_report(context).await;
        }
    }

    /// Sends a report. If figures are due, it contains the counts since the last confirmed figures; a failed report
    /// loses no counts.
    async fn send_report(&mut self, context: &NodeContext) {
        if context.is_degraded() {
            self.membership.skip_report(context);
            return;
        }
        let figures_interval = figures_interval(context);
        let is_due = Instant::now() >= self.next_figures;
        let state = is_due.then(|| serde_json::to_string(&NodeStatus::of(context)).ok()).flatten();
        let active = context.limiter().active_policy();
        let figures = state.as_deref().and_then(|state| {
            let now = CounterSnapshot::of(context);
            let on_trial = |rule: &str| is_on_trial(active.policy(), rule);
            let state_lifetime = figures_interval * STATUS_LIFETIME_INTERVALS;
            let now = (now, self.membership.redis_time());
            self.figures.next_to_send(now, on_trial, state, state_lifetime)
        });
        let has_figures = figures.is_some();
        let events = self.events.next_to_send(context.events());
        let is_confirmed = self.membership.report(context, &events, figures).await;
        if is_confirmed {
            self.events.confirm();
        }
        if has_figures {
            self.next_figures = Instant::now() + figures_interval - self.interval / 2;
        }
        if has_figures && is_confirmed {
            self.figures.confirm();
        }
    }
}
