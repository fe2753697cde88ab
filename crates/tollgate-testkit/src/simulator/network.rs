//! What a node sees of the store: through a network that loses, delays and cuts, at the mercy of the schedule.

use std::sync::Arc;
use std::time::Duration;

use tollgate::{
    Decision, Key, Listing, ManualClock, MemoryStore, Page, Permit, Plan, Status, Store,
    StoreError, StoreErrorKind, Timestamp,
};

use super::check::Outcome;
use super::request::{Act, Request};
use super::schedule::Silence;
use super::setting::TIMEOUT;
use super::world::World;
use crate::answer::Answer;
use crate::random::Random;

/// How the store and the ways to it are.
#[derive(Debug, Default)]
pub(super) struct Condition {
    /// What the store does to all.
    pub(super) store: Option<Silence>,
    /// What a way does to one.
    pub(super) links: Vec<Option<Silence>>,
    /// How long answers take, if that is unusual.
    pub(super) slow: Option<u64>,
    /// How often it was killed: what was on its way then is lost.
    pub(super) life: u64,
    /// What runs when the silence ends.
    pub(super) late: Vec<Request>,
}

impl Condition {
    pub(super) fn silence(&self, node: usize) -> Option<Silence> {
        self.store.or(self.links.get(node).copied().flatten())
    }
}

/// One node's way to the store.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) world: Arc<World>,
    pub(super) node: usize,
}

/// What a question is for, by who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A caller's.
    Operation,
    /// To see whether the store answers.
    Probe,
    /// To tell what was spent alone.
    Tell,
}

/// The store that all share.
pub(super) type Shared = MemoryStore<ManualClock>;

/// Why there was no answer.
type Failure = (u64, StoreErrorKind);

impl Link {
    /// Sends a request, lets it run, and waits for the answer as long as a node waits.
    async fn call<T>(
        &self,
        request: Request,
        run: impl FnOnce(&Shared) -> T,
        told: impl Fn(&T) -> Option<Vec<Answer>>,
    ) -> Result<T, StoreError> {
        let world = &self.world;
        let purpose = world.sent(self.node, &request);
        let (task, changes_then) = (world.time.task(), world.check().breaker_changes(self.node));
        let outcome = self.deliver(&request, purpose, run, told).await;
        let outcome = match outcome {
            Ok(answer) => Ok(answer),
            Err((at, kind)) => {
                world.time.until(at).await;
                Err(StoreError::new(kind, format!("{kind:?}")))
            }
        };
        let is_heard = outcome.is_ok();
        world.answered(self.node, &request, purpose, Outcome { task, is_heard, changes_then });
        outcome
    }

    async fn deliver<T>(
        &self,
        request: &Request,
        purpose: Purpose,
        run: impl FnOnce(&Shared) -> T,
        told: impl Fn(&T) -> Option<Vec<Answer>>,
    ) -> Result<T, Failure> {
        let world = &self.world;
        let now = world.time.now();
        let given_up = (now + TIMEOUT, StoreErrorKind::Timeout);
        let (arrives, life) = self.send(request, purpose, now)?;
        world.time.until(now + arrives / 2).await;
        if world.condition().life != life {
            return Err((now, StoreErrorKind::Unavailable));
        }
        let task = (purpose == Purpose::Operation).then(|| world.time.task());
        let answer = world.run((task, request), run, told);
        if arrives > TIMEOUT {
            return Err(given_up);
        }
        world.time.until(now + arrives).await;
        let condition = world.condition();
        match condition.silence(self.node) {
            _ if condition.life != life => Err((now, StoreErrorKind::Unavailable)),
            None => Ok(answer),
            Some(Silence::AnswersProbes) if purpose == Purpose::Probe => Ok(answer),
            Some(_) => Err(given_up),
        }
    }

    /// How long the answer takes, and of which life of the store, if the request gets there.
    fn send(&self, request: &Request, purpose: Purpose, now: u64) -> Result<(u64, u64), Failure> {
        let given_up = (now + TIMEOUT, StoreErrorKind::Timeout);
        let mut condition = self.world.condition();
        let usual = self.latency(request, now);
        let takes = condition.slow.map_or(usual, |slow| slow + usual);
        match condition.silence(self.node) {
            None => Ok((takes, condition.life)),
            Some(Silence::AnswersProbes) if purpose == Purpose::Probe => {
                Ok((takes, condition.life))
            }
            Some(Silence::Refuses) => Err((now + usual, StoreErrorKind::Unavailable)),
            Some(Silence::Swallows | Silence::AnswersProbes) => Err(given_up),
            Some(Silence::RunsUnheard) => Ok((2 * TIMEOUT, condition.life)),
            Some(Silence::RunsLate) => {
                condition.late.push(request.clone());
                Err(given_up)
            }
        }
    }

    /// Drawn by what is asked and when, not by the order of questions: a node tells of its keys in any order.
    fn latency(&self, request: &Request, now: u64) -> u64 {
        let setting = &self.world.setting;
        let name = request.wants.iter().map(|want| want.key as u64 + 1).sum::<u64>();
        let mix = setting.seed ^ now.rotate_left(20) ^ (self.node as u64) << 8 ^ name;
        Random::new(mix).within(setting.round_trip / 10, setting.round_trip)
    }

    /// Looks at the keys as well, as the oracle does: whoever looks repairs what is ahead of a clock.
    fn seeing<T>(&self, request: &Request, store: &Shared, answer: T) -> T {
        for want in &request.wants {
            let _ = store.stats(&self.world.setting.keys[want.key].key());
        }
        answer
    }

    fn request(&self, act: Act, plan: &Plan<'_>) -> Request {
        Request::of(&self.world.setting, act, plan)
    }
}

fn answers(decision: &Decision<'_>) -> Option<Vec<Answer>> {
    Some(decision.statuses().iter().map(Answer::from).collect())
}

fn nobody_asks<T>() -> Result<T, StoreError> {
    Err(StoreError::new(StoreErrorKind::Incompatible, "nobody asks for this here"))
}

impl Store for Link {
    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.call(self.request(Act::Take, plan), |store| store.take(plan), answers).await
    }

    async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.call(self.request(Act::Peek, plan), |store| store.peek(plan), answers).await
    }

    async fn refund<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.call(self.request(Act::Refund, plan), |store| store.refund(plan), answers).await
    }

    async fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Result<Decision<'a>, StoreError> {
        let age_us = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
        let request = self.request(Act::Debit { age_us }, plan);
        self.call(request, |store| store.debit(plan, age), answers).await
    }

    async fn release(&self, permit: &Permit) -> Result<bool, StoreError> {
        let request = Request::about(&self.world.setting, Act::Release, permit);
        let seen = request.clone();
        let run = |store: &Shared| self.seeing(&seen, store, store.release(permit));
        self.call(request, run, |_| None).await
    }

    async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, StoreError> {
        let request = Request::about(&self.world.setting, Act::Renew, permit);
        let seen = request.clone();
        let run = |store: &Shared| self.seeing(&seen, store, store.renew(permit));
        self.call(request, run, |_| None).await
    }

    async fn pause(&self, _: &Key<'_>, _: Duration) -> Result<(), StoreError> {
        nobody_asks()
    }

    async fn reset(&self, _: &Key<'_>) -> Result<(), StoreError> {
        nobody_asks()
    }

    async fn stats<'a>(&self, _: &Key<'a>) -> Result<Status<'a>, StoreError> {
        nobody_asks()
    }

    async fn list(&self, _: &Listing) -> Result<Page, StoreError> {
        nobody_asks()
    }
}
