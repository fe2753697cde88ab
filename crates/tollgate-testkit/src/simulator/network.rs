//! The network between nodes and the store: it delays, loses and cuts calls as scheduled.

use std::sync::Arc;
use std::time::Duration;

use tollgate::{
    Decision, Key, Listing, ManualClock, MemoryStore, Page, Permit, Plan, Status, Store,
    StoreError, StoreErrorKind, Timestamp,
};

use super::check::{CallResult, Outcome};
use super::request::{Action, Request};
use super::scenario::TIMEOUT;
use super::schedule::Silence;
use super::world::World;
use crate::answer::Answer;
use crate::random::Random;

/// Active faults of the store and of its links.
#[derive(Debug, Default)]
pub(super) struct NetworkState {
    /// Silence of the store to all nodes.
    pub(super) store_silence: Option<Silence>,
    /// Silence of each node's link.
    pub(super) link_silences: Vec<Option<Silence>>,
    /// Additional latency of replies, in microseconds.
    pub(super) extra_latency: Option<u64>,
    /// Number of kills so far. Calls in flight during a kill are lost.
    pub(super) kills: u64,
    /// Requests that run when the silence ends.
    pub(super) late_requests: Vec<Request>,
}

impl NetworkState {
    pub(super) fn silence(&self, node: usize) -> Option<Silence> {
        self.store_silence.or(self.link_silences.get(node).copied().flatten())
    }
}

/// One node's connection to the store.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) world: Arc<World>,
    pub(super) node: usize,
}

/// Purpose of a call to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The request of a caller.
    Operation,
    Probe,
    /// Replay of an admission of the outage.
    Replay,
}

/// The shared store.
pub(super) type Shared = MemoryStore<ManualClock>;

/// Time at which a call fails, and how.
type Failure = (u64, StoreErrorKind);

impl Link {
    /// Sends a request, runs it, and waits for its reply until the time-out.
    async fn call<T>(
        &self,
        request: Request,
        run: impl FnOnce(&Shared) -> T,
        answers: impl Fn(&T) -> Option<Vec<Answer>>,
    ) -> Result<T, StoreError> {
        let world = &self.world;
        let purpose = world.check_call(self.node, &request);
        let task = world.time.current_task();
        let breaker_changes = world.check().breaker_changes(self.node);
        let reply = match self.deliver(&request, purpose, run, answers).await {
            Ok(reply) => Ok(reply),
            Err((at, kind)) => {
                world.time.sleep_until(at).await;
                Err(StoreError::new(kind, format!("{kind:?}")))
            }
        };
        let result = match &reply {
            Ok(_) => CallResult::Reply,
            Err(error) if error.may_have_run() => CallResult::MayHaveRun,
            Err(_) => CallResult::NotRun,
        };
        let outcome = Outcome { task, result, breaker_changes };
        world.check_outcome(self.node, &request, purpose, outcome);
        reply
    }

    async fn deliver<T>(
        &self,
        request: &Request,
        purpose: Purpose,
        run: impl FnOnce(&Shared) -> T,
        answers: impl Fn(&T) -> Option<Vec<Answer>>,
    ) -> Result<T, Failure> {
        let world = &self.world;
        let now = world.time.now();
        let timed_out = (now + TIMEOUT, StoreErrorKind::Timeout);
        let (latency, kills) = self.send(request, purpose, now)?;
        world.time.sleep_until(now + latency / 2).await;
        // The node cannot know whether the store ran the request before it was killed.
        if world.network().kills != kills {
            return Err((now, StoreErrorKind::Lost));
        }
        let task = (purpose == Purpose::Operation).then(|| world.time.current_task());
        let reply = world.run((task, request), run, answers);
        if latency > TIMEOUT {
            return Err(timed_out);
        }
        world.time.sleep_until(now + latency).await;
        let network = world.network();
        match self.silence_of(&network, request, purpose) {
            _ if network.kills != kills => Err((now, StoreErrorKind::Lost)),
            None => Ok(reply),
            Some(_) => Err(timed_out),
        }
    }

    /// Returns the latency of the reply and the number of kills so far, if the request reaches the store.
    fn send(&self, request: &Request, purpose: Purpose, now: u64) -> Result<(u64, u64), Failure> {
        let timed_out = (now + TIMEOUT, StoreErrorKind::Timeout);
        let mut network = self.world.network();
        let normal = self.normal_latency(request, now);
        let latency = network.extra_latency.map_or(normal, |extra| extra + normal);
        match self.silence_of(&network, request, purpose) {
            None => Ok((latency, network.kills)),
            Some(Silence::Refuses | Silence::RefusesAllButProbes | Silence::RefusesFirstKey) => {
                Err((now + normal, StoreErrorKind::Unavailable))
            }
            Some(Silence::DropsRequests | Silence::RepliesToProbes) => Err(timed_out),
            Some(Silence::DropsReplies) => Ok((2 * TIMEOUT, network.kills)),
            Some(Silence::RunsLate) => {
                network.late_requests.push(request.clone());
                Err(timed_out)
            }
        }
    }

    /// Returns the silence that affects a call.
    fn silence_of(
        &self,
        network: &NetworkState,
        request: &Request,
        purpose: Purpose,
    ) -> Option<Silence> {
        network.silence(self.node).filter(|silence| match silence {
            Silence::RepliesToProbes | Silence::RefusesAllButProbes => purpose != Purpose::Probe,
            Silence::RefusesFirstKey => request.costs.iter().any(|cost| cost.key == 0),
            Silence::Refuses
            | Silence::DropsRequests
            | Silence::DropsReplies
            | Silence::RunsLate => true,
        })
    }

    /// Draws the latency from the request and its time, not from the order of calls: a node replays its keys in any
    /// order.
    fn normal_latency(&self, request: &Request, now: u64) -> u64 {
        let scenario = &self.world.scenario;
        let keys = request.costs.iter().map(|cost| cost.key as u64 + 1).sum::<u64>();
        let mix = scenario.seed ^ now.rotate_left(20) ^ (self.node as u64) << 8 ^ keys;
        Random::new(mix).within(scenario.round_trip / 10, scenario.round_trip)
    }

    /// Reads the stats of the keys, as the oracle does: a read repairs state that is ahead of the clock.
    fn read_stats(&self, request: &Request, store: &Shared) {
        for cost in &request.costs {
            let _ = store.stats(&self.world.scenario.keys[cost.key].key());
        }
    }

    fn request(&self, action: Action, plan: &Plan<'_>) -> Request {
        Request::from_plan(&self.world.scenario, action, plan)
    }
}

fn answers(decision: &Decision<'_>) -> Option<Vec<Answer>> {
    Some(decision.statuses().iter().map(Answer::from).collect())
}

fn unsupported<T>() -> Result<T, StoreError> {
    Err(StoreError::new(StoreErrorKind::Incompatible, "the simulator does not support this call"))
}

impl Store for Link {
    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.call(self.request(Action::Take, plan), |store| store.take(plan), answers).await
    }

    async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.call(self.request(Action::Peek, plan), |store| store.peek(plan), answers).await
    }

    async fn refund<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.call(self.request(Action::Refund, plan), |store| store.refund(plan), answers).await
    }

    async fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Result<Decision<'a>, StoreError> {
        let age_us = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
        let request = self.request(Action::Debit { age_us }, plan);
        self.call(request, |store| store.debit(plan, age), answers).await
    }

    async fn release(&self, permit: &Permit) -> Result<bool, StoreError> {
        let request = Request::from_permit(&self.world.scenario, Action::Release, permit);
        let keys = request.clone();
        let run = |store: &Shared| {
            let is_released = store.release(permit);
            self.read_stats(&keys, store);
            is_released
        };
        self.call(request, run, |_| None).await
    }

    async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, StoreError> {
        let request = Request::from_permit(&self.world.scenario, Action::Renew, permit);
        let keys = request.clone();
        let run = |store: &Shared| {
            let expires_at = store.renew(permit);
            self.read_stats(&keys, store);
            expires_at
        };
        self.call(request, run, |_| None).await
    }

    async fn pause(&self, _: &Key<'_>, _: Duration) -> Result<(), StoreError> {
        unsupported()
    }

    async fn reset(&self, _: &Key<'_>) -> Result<(), StoreError> {
        unsupported()
    }

    async fn stats<'a>(&self, _: &Key<'a>) -> Result<Status<'a>, StoreError> {
        unsupported()
    }

    async fn list(&self, _: &Listing) -> Result<Page, StoreError> {
        unsupported()
    }
}
