//! Decisions of the memory store: all or nothing, at one time, with all shards of the plan locked.

use std::hash::BuildHasher;
use std::time::Duration;

use smallvec::SmallVec;

use super::shard::{LocatedKey, SWEPT_PER_INSERT};
use super::table::Table;
use super::take_all::SlotHolder;
use super::{AtCap, MemoryStore};
use crate::algorithm::{Op, Reply, State, Verdict};
use crate::decision::{Decision, Outcome, Status, Statuses};
use crate::plan::{Key, Mode, Plan, Take};
use crate::time::{Clock, Timestamp};

/// Buffers for the full names of keys whose limit is not registered; rarely used.
pub(super) type Texts = Vec<Vec<u8>>;

/// `retry_after` of a new key that is refused because the store is full.
const AT_CAP_RETRY: Duration = Duration::from_secs(1);

impl<C: Clock, H: BuildHasher> MemoryStore<C, H> {
    /// Takes every cost of the plan, or nothing.
    #[must_use]
    pub fn take<'a>(&self, plan: &Plan<'a>) -> Decision<'a> {
        match plan.takes() {
            [take] => {
                let (key, cost) = (take.key(), take.cost());
                // Separate calls, so that the usual path is compiled for `Op::Take` only.
                let (outcome, now) = match plan.permit() {
                    None => self.take_one(&key, cost),
                    Some(permit) => {
                        let op = Op::Hold { cost, permit, ttl: Duration::MAX };
                        let (reply, now) = self.apply_slow(&key, op);
                        (Outcome::Reply(reply), now)
                    }
                };
                Decision::of_one(now, take.key().limit(), take.mode(), outcome)
            }
            takes => {
                let usual = if plan.permit().is_none() { self.take_plan(takes) } else { None };
                usual.unwrap_or_else(|| self.take_all(takes, plan.permit().map(SlotHolder::of)))
            }
        }
    }

    /// Returns the decision of `take` without taking anything.
    #[must_use]
    pub fn peek<'a>(&self, plan: &Plan<'a>) -> Decision<'a> {
        self.apply_each(plan, |cost| Op::Peek { cost })
    }

    /// Refunds the cost of each take, never above full, and returns the figures after it.
    pub fn refund<'a>(&self, plan: &Plan<'a>) -> Decision<'a> {
        self.apply_each(plan, |cost| Op::Refund { cost })
    }

    /// Debits each cost unconditionally, as if `age` ago and never below empty, and returns the figures after
    /// it.
    pub fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Decision<'a> {
        self.apply_each(plan, |cost| Op::Debit { cost, age })
    }

    /// Returns the figures of one key.
    #[must_use]
    pub fn stats<'a>(&self, key: &Key<'a>) -> Status<'a> {
        let (reply, _) = self.apply(key, Op::Peek { cost: 0 });
        Status::new(key.limit(), Mode::Enforce, reply)
    }

    /// Refuses every take from the key for `length`. A shorter pause does not shorten a longer one.
    pub fn pause(&self, key: &Key<'_>, length: Duration) {
        let mut text = Vec::new();
        let at = self.locate(key, &mut text);
        let Some(mut table) = self.lock_one(at.location.shard) else { return };
        let now = self.now(&mut table);
        let pause = |state: &mut State| state.pause(now, length);
        if self.with_state(&mut table, &at, pause).is_some() {
            return;
        }
        self.sweep_table(&mut table, SWEPT_PER_INSERT, now);
        if self.reserve_space() {
            let mut state = State::Fresh;
            pause(&mut state);
            self.insert(&mut table, &at, state);
        }
    }

    /// Deletes the state of the key.
    pub fn reset(&self, key: &Key<'_>) {
        let mut text = Vec::new();
        let at = self.locate(key, &mut text);
        if let Some(mut table) = self.lock_one(at.location.shard) {
            self.remove(&mut table, &at.location);
        }
    }

    /// Applies an operation to one key under its shard's lock.
    #[inline]
    pub(super) fn apply(&self, key: &Key<'_>, op: Op) -> (Reply, Timestamp) {
        match self.locate_registered(key) {
            Some(at) => self.apply_at(&at, op),
            None => self.apply_slow(key, op),
        }
    }

    /// Like `apply`, also for limits that are not registered.
    #[inline(never)]
    fn apply_slow(&self, key: &Key<'_>, op: Op) -> (Reply, Timestamp) {
        let mut text = Vec::new();
        self.apply_at(&self.locate(key, &mut text), op)
    }

    #[inline(always)]
    fn apply_at(&self, at: &LocatedKey<'_>, op: Op) -> (Reply, Timestamp) {
        let reading = self.clock.monotonic_now();
        let Some(mut table) = self.lock_one(at.location.shard) else {
            // Unreachable: no shard has this index. Reply as for a fresh key.
            let now = self.clock.now();
            return (at.limit.parameters().step(&mut State::Fresh, now, op), now);
        };
        let now = self.now_by(reading, &mut table);
        let known = self.step(&mut table, at, now, op);
        (known.unwrap_or_else(|| self.apply_new(&mut table, at, now, op)), now)
    }

    /// Applies an operation to a key that does not exist yet.
    #[cold]
    pub(super) fn apply_new(
        &self,
        table: &mut Table,
        at: &LocatedKey<'_>,
        now: Timestamp,
        op: Op,
    ) -> Reply {
        let parameters = at.limit.parameters();
        let mut state = State::Fresh;
        let reply = parameters.step(&mut state, now, op);
        let fits = match op {
            Op::Peek { cost } => cost == 0 || !reply.is_allowed() || self.is_below_cap(),
            _ if state.is_fresh(now) => true,
            _ => {
                self.sweep_table(table, SWEPT_PER_INSERT, now);
                let reserved = self.reserve_space();
                if reserved {
                    self.insert(table, at, state);
                }
                reserved
            }
        };
        match op {
            _ if fits => reply,
            Op::Take { cost }
            | Op::Hold { cost, .. }
            | Op::Lease { amount: cost, .. }
            | Op::Peek { cost } => {
                let peek = parameters.step(&mut State::Fresh, now, Op::Peek { cost });
                self.at_cap_reply(peek).unwrap_or(reply)
            }
            // The operation is not stored; return the figures of a fresh key.
            _ => parameters.step(&mut State::Fresh, now, Op::Peek { cost: 0 }),
        }
    }

    /// Returns the refusal for a new key when the store is full, from the reply of a peek; `None` if `at_cap`
    /// allows.
    pub(super) fn at_cap_reply(&self, peek: Reply) -> Option<Reply> {
        match self.at_cap {
            AtCap::Allow => None,
            AtCap::Deny => Some(peek.with_verdict(Verdict::Deny { retry_after: AT_CAP_RETRY })),
        }
    }

    pub(super) fn locate_all<'n>(
        &self,
        takes: &[Take<'n>],
        texts: &'n mut Texts,
    ) -> SmallVec<[LocatedKey<'n>; 2]> {
        let registered = takes.iter().map(|take| self.locate_registered(&take.key()));
        registered.collect::<Option<_>>().unwrap_or_else(|| {
            texts.resize_with(takes.len(), Vec::new);
            let pairs = takes.iter().zip(texts);
            pairs.map(|(take, text)| self.locate(&take.key(), text)).collect()
        })
    }

    /// Applies one operation to each key of a plan, with all their shards locked.
    fn apply_each<'a>(&self, plan: &Plan<'a>, op: impl Fn(u64) -> Op) -> Decision<'a> {
        let mut texts = Texts::default();
        let located = self.locate_all(plan.takes(), &mut texts);
        let mut locked = self.lock_all(located.iter().map(|at| at.location.shard));
        let now = locked.now(&self.clock);
        let mut statuses = Statuses::new();
        for (take, at) in plan.takes().iter().zip(located) {
            let Some(table) = locked.table(at.location.shard) else { continue };
            let limit = take.key().limit();
            let op = op(take.cost());
            let known = self.step(table, &at, now, op);
            let reply = known.unwrap_or_else(|| self.apply_new(table, &at, now, op));
            statuses.push(Status::new(limit, take.mode(), reply));
        }
        Decision::new(now, statuses)
    }
}
