//! The nodes: the real decision code, each with its way to the store, and what they are asked to do.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tollgate::{BreakerState, FallbackStore, ManualClock, Permit, Store, StoreEvent};

use super::check::{Asks, Worked};
use super::clockwork::TaskId;
use super::network::Link;
use super::request::{Act, Request};
use super::setting::OPEN_FOR;
use super::traffic::Caller;
use super::world::{MAX_KEYS, World};
use crate::random::Random;

/// A node and how it is.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) number: usize,
    pub(super) state: State,
    store: Arc<FallbackStore<Link, ManualClock>>,
    /// Whose turn came while it stood still.
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
        let setting = &world.setting;
        world.check().joined(nodes, world.time.now());
        world.condition().links.push(None);
        let (link, hears) = (Link { world: Arc::clone(world), node: number }, Arc::clone(world));
        let store = FallbackStore::builder(link)
            .clock(world.time.nodes.clone())
            .nodes(among(nodes))
            .open_after(setting.threshold)
            .open_for(Duration::from_micros(OPEN_FOR))
            .max_keys(MAX_KEYS)
            .max_distribution(setting.at_most)
            .on_event(move |event| hear(&hears, number, &event))
            .build();
        Self { number, state: State::Live, store: Arc::new(store), waiting: Vec::new() }
    }

    pub(super) fn asks(&self) -> Asks {
        if self.store.breaker() == BreakerState::Closed { Asks::Yes } else { Asks::No }
    }

    /// It hears how many nodes there are.
    pub(super) fn learn(&self, world: &World, nodes: u32) {
        self.store.set_nodes(among(nodes));
        world.check().learned(self.number, nodes, world.time.now());
    }

    /// Looks after the store about once a second, for ever.
    pub(super) fn attends(&self, world: &Arc<World>) -> impl Future<Output = ()> + Send + use<> {
        let (world, store, node) = (Arc::clone(world), Arc::clone(&self.store), self.number);
        let mut random = Random::new(world.setting.seed ^ (node as u64) << 32);
        async move {
            loop {
                let rest = random.within(900_000, 1_100_000);
                world.time.until(world.time.now() + rest).await;
                world.check().attend_begins(node);
                store.maintain().await;
                world.check().attended(node, world.time.now());
            }
        }
    }

    /// Answers a caller, who may hold slots for a while.
    pub(super) fn answers(
        &self,
        world: &Arc<World>,
        caller: Caller,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (world, store, node) = (Arc::clone(world), Arc::clone(&self.store), self.number);
        async move {
            let Some(permit) = decide(&world, &store, node, &caller.request).await else { return };
            let begun = world.time.now();
            if let Some(after) = caller.keeps.renewed_after {
                world.time.until(begun + after).await;
                renew(&world, &store, node, &permit).await;
            }
            if let Some(after) = caller.keeps.released_after {
                world.time.until(begun + after).await;
                let request = Request::about(&world.setting, Act::Release, &permit);
                let held = world.check().permits(node, &request, world.time.now());
                let worked = matches!(store.release(&permit).await, Ok(true));
                world.check().permitd(
                    &request,
                    held,
                    if worked { Worked::Yes } else { Worked::No },
                );
            }
        }
    }
}

/// Asks for a decision, and gives the permit of the slots that were taken.
async fn decide(
    world: &World,
    store: &FallbackStore<Link, ManualClock>,
    node: usize,
    request: &Request,
) -> Option<Permit> {
    let plan = request.plan(&world.setting);
    let begun = world.check().begins(node, request, world.time.now());
    let decision = match request.act {
        Act::Take => store.take(&plan).await,
        Act::Peek => store.peek(&plan).await,
        Act::Refund => store.refund(&plan).await,
        Act::Debit { age_us } => store.debit(&plan, Duration::from_micros(age_us)).await,
        Act::Release | Act::Renew => return None,
    };
    let decision = decision.expect("these never fail");
    let who = (node, world.time.task());
    world.check().decided(who, request, begun, &decision, world.time.now());
    Permit::of(&plan, &decision).filter(|_| request.act == Act::Take)
}

async fn renew(
    world: &World,
    store: &FallbackStore<Link, ManualClock>,
    node: usize,
    permit: &Permit,
) {
    let (request, asked) = (Request::about(&world.setting, Act::Renew, permit), world.time.now());
    let held = world.check().permits(node, &request, asked);
    let worked = match store.renew(permit).await {
        Ok(Some(_)) => Worked::Yes,
        _ => Worked::No,
    };
    let mut check = world.check();
    check.permitd(&request, held, worked);
    if worked == Worked::Yes {
        check.renewed(&request, asked);
    }
}

fn hear(world: &World, node: usize, event: &StoreEvent<'_>) {
    let now = world.time.now();
    match event {
        StoreEvent::Lost { .. } => world.check().lost(node, now),
        StoreEvent::Restored(_) => world.check().restored(node, now),
        _ => {}
    }
}

fn among(nodes: u32) -> NonZeroU32 {
    NonZeroU32::new(nodes).unwrap_or(NonZeroU32::MIN)
}
