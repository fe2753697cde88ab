//! A node: the real decision code with a simulated link to the store, and its tasks.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tollgate::{BreakerState, FallbackStore, ManualClock, Permit, Store, StoreEvent};

use super::network::Link;
use super::request::{Action, Request};
use super::scenario::OPEN_FOR;
use super::traffic::Caller;
use super::virtual_time::TaskId;
use super::world::{MAX_KEYS, World};
use crate::random::Random;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) number: usize,
    pub(super) state: State,
    store: Arc<FallbackStore<Link, ManualClock>>,
    /// Tasks that came due while the node was paused.
    pub(super) waiting: Vec<TaskId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Live,
    Paused,
    Gone,
}

impl Node {
    pub(super) fn new(world: &Arc<World>, number: usize, nodes: u32) -> Self {
        let scenario = &world.scenario;
        world.check().node_joined(nodes, world.time.now());
        world.network().link_silences.push(None);
        let link = Link { world: Arc::clone(world), node: number };
        let event_world = Arc::clone(world);
        let store = FallbackStore::builder(link)
            .clock(world.time.nodes.clone())
            .nodes(node_count(nodes))
            .open_after(scenario.threshold)
            .open_for(Duration::from_micros(OPEN_FOR))
            .max_keys(MAX_KEYS)
            .max_distribution(scenario.max_distribution)
            .on_event(move |event| check_event(&event_world, number, &event))
            .build();
        Self { number, state: State::Live, store: Arc::new(store), waiting: Vec::new() }
    }

    pub(super) fn is_breaker_closed(&self) -> bool {
        self.store.breaker() == BreakerState::Closed
    }

    pub(super) fn set_nodes(&self, world: &World, nodes: u32) {
        self.store.set_nodes(node_count(nodes));
        world.check().node_count_changed(self.number, nodes, world.time.now());
    }

    /// Returns the task that calls `maintain` about once a second.
    pub(super) fn maintain(&self, world: &Arc<World>) -> impl Future<Output = ()> + Send + use<> {
        let (world, store, node) = (Arc::clone(world), Arc::clone(&self.store), self.number);
        let mut random = Random::new(world.scenario.seed ^ (node as u64) << 32);
        async move {
            loop {
                let interval = random.within(900_000, 1_100_000);
                world.time.sleep_until(world.time.now() + interval).await;
                world.check().maintain_begins(node);
                store.maintain().await;
                world.check().maintain_ended(node, world.time.now());
            }
        }
    }

    /// Returns the task that serves a caller, and then renews and releases its slots.
    pub(super) fn serve(
        &self,
        world: &Arc<World>,
        caller: Caller,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (world, store, node) = (Arc::clone(world), Arc::clone(&self.store), self.number);
        async move {
            let Some(permit) = decide(&world, &store, node, &caller.request).await else { return };
            let decided_at = world.time.now();
            if let Some(after) = caller.holding.renewed_after {
                world.time.sleep_until(decided_at + after).await;
                renew(&world, &store, node, &permit).await;
            }
            if let Some(after) = caller.holding.released_after {
                world.time.sleep_until(decided_at + after).await;
                let request = Request::from_permit(&world.scenario, Action::Release, &permit);
                let is_held = world.check().permit_begins(node, &request, world.time.now());
                let is_released = matches!(store.release(&permit).await, Ok(true));
                world.check().permit_ended(&request, is_held, is_released);
            }
        }
    }
}

/// Decides a request, and returns the permit of its slots.
async fn decide(
    world: &World,
    store: &FallbackStore<Link, ManualClock>,
    node: usize,
    request: &Request,
) -> Option<Permit> {
    let plan = request.plan(&world.scenario);
    let begun = world.check().request_begins(node, request, world.time.now());
    let decision = match request.action {
        Action::Take => store.take(&plan).await,
        Action::Peek => store.peek(&plan).await,
        Action::Refund => store.refund(&plan).await,
        Action::Debit { age_us } => store.debit(&plan, Duration::from_micros(age_us)).await,
        Action::Release | Action::Renew => return None,
    };
    let decision = decision.expect("a fallback store never fails to decide");
    let caller = (node, world.time.current_task());
    world.check().request_decided(caller, request, begun, &decision, world.time.now());
    Permit::of(&plan, &decision).filter(|_| request.action == Action::Take)
}

async fn renew(
    world: &World,
    store: &FallbackStore<Link, ManualClock>,
    node: usize,
    permit: &Permit,
) {
    let request = Request::from_permit(&world.scenario, Action::Renew, permit);
    let began = world.time.now();
    let is_held = world.check().permit_begins(node, &request, began);
    let is_renewed = matches!(store.renew(permit).await, Ok(Some(_)));
    let mut check = world.check();
    check.permit_ended(&request, is_held, is_renewed);
    if is_renewed {
        check.permit_renewed(&request, began);
    }
}

fn check_event(world: &World, node: usize, event: &StoreEvent<'_>) {
    let now = world.time.now();
    match event {
        StoreEvent::Lost { .. } => world.check().store_lost(node, now),
        StoreEvent::Restored(_) => world.check().store_restored(node, now),
        _ => {}
    }
}

fn node_count(nodes: u32) -> NonZeroU32 {
    NonZeroU32::new(nodes).unwrap_or(NonZeroU32::MIN)
}
