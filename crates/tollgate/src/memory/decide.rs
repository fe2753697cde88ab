//! Decisions: all or nothing, at one time, under the locks of every key involved.

use std::hash::BuildHasher;
use std::time::Duration;

use smallvec::SmallVec;

use super::shard::{Located, Locked, SWEPT_PER_INSERT};
use super::table::Table;
use super::{AtCap, MemoryStore};
use crate::algorithm::{Op, Reply, State};
use crate::clock::Clock;
use crate::decision::{Decision, Statuses, Verdict};
use crate::permit::PermitId;
use crate::plan::{Key, Mode, Plan, Take};
use crate::status::Status;
use crate::time::Timestamp;

/// Room for names that must be written out: almost always none.
type Texts = Vec<Vec<u8>>;

/// How long a key is told to wait when there is no place to remember it.
const AT_CAP_RETRY: Duration = Duration::from_secs(1);

/// A take under evaluation.
struct Tried<'a, 'n> {
    take: Take<'a>,
    at: Located<'n>,
    reply: Reply,
    place: Place,
}

/// Whether a key has somewhere to be written down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is there already, or needs none.
    Held,
    /// It is new and a place is reserved for it.
    Reserved,
    /// It is new and the store is full.
    None,
}

impl<C: Clock, H: BuildHasher> MemoryStore<C, H> {
    /// Takes all that the plan wants, or nothing.
    #[must_use]
    pub fn take<'a>(&self, plan: &Plan<'a>) -> Decision<'a> {
        match plan.takes() {
            [take] => {
                let (key, cost) = (take.key(), take.cost());
                // Apart, so that the usual take is compiled for being one.
                let (reply, now) = match plan.permit() {
                    None => self.apply(&key, Op::Take { cost }),
                    Some(permit) => self.apply_anywhere(&key, Op::Hold { cost, permit }),
                };
                Decision::of_one(now, take.key().limit(), take.mode(), reply)
            }
            takes => self.take_all(takes, plan.permit()),
        }
    }

    /// Tells what `take` would answer, and takes nothing.
    #[must_use]
    pub fn peek<'a>(&self, plan: &Plan<'a>) -> Decision<'a> {
        self.each(plan, |cost| Op::Peek { cost })
    }

    /// Gives back each take's cost, never above full, and tells the figures after.
    pub fn refund<'a>(&self, plan: &Plan<'a>) -> Decision<'a> {
        self.each(plan, |cost| Op::Refund { cost })
    }

    /// Takes without asking, as if it had happened `age` ago, down to empty at most, and tells the
    /// figures after.
    pub fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Decision<'a> {
        self.each(plan, |cost| Op::Debit { cost, age })
    }

    /// The figures of one key.
    #[must_use]
    pub fn stats<'a>(&self, key: &Key<'a>) -> Status<'a> {
        let (reply, _) = self.apply(key, Op::Peek { cost: 0 });
        Status::new(key.limit(), Mode::Enforce, reply)
    }

    /// Refuses every take from the key for so long. A shorter pause does not end a longer one.
    pub fn pause(&self, key: &Key<'_>, length: Duration) {
        let mut text = Vec::new();
        let at = self.locate(key, &mut text);
        let Some(mut table) = self.lock_one(at.spot.shard) else { return };
        let now = self.clock.now();
        let pause = |state: &mut State| state.pause(now, length);
        if self.with_state(&mut table, &at, pause).is_some() {
            return;
        }
        self.sweep_table(&mut table, SWEPT_PER_INSERT, now);
        if self.reserve() {
            let mut state = State::Fresh;
            pause(&mut state);
            self.insert(&mut table, &at, state);
        }
    }

    /// Forgets everything recorded for the key.
    pub fn reset(&self, key: &Key<'_>) {
        let mut text = Vec::new();
        let at = self.locate(key, &mut text);
        if let Some(mut table) = self.lock_one(at.spot.shard) {
            self.remove(&mut table, &at.spot);
        }
    }

    /// One operation on one key, under its lock. The clock is read once the lock is held, so that
    /// callers are served in the order of their times.
    #[inline(always)]
    pub(crate) fn apply(&self, key: &Key<'_>, op: Op) -> (Reply, Timestamp) {
        match self.locate_numbered(key) {
            Some(at) => self.apply_at(&at, op),
            None => self.apply_anywhere(key, op),
        }
    }

    /// The same wherever the key's name must be written.
    #[cold]
    fn apply_anywhere(&self, key: &Key<'_>, op: Op) -> (Reply, Timestamp) {
        let mut text = Vec::new();
        self.apply_at(&self.locate(key, &mut text), op)
    }

    #[inline(always)]
    fn apply_at(&self, at: &Located<'_>, op: Op) -> (Reply, Timestamp) {
        let Some(mut table) = self.lock_one(at.spot.shard) else {
            // No shard has this index; answer as for a key never seen.
            let now = self.clock.now();
            return (at.limit.parameters().step(&mut State::Fresh, now, op), now);
        };
        let now = self.clock.now();
        let known = self.step(&mut table, at, now, op);
        (known.unwrap_or_else(|| self.apply_new(&mut table, at, now, op)), now)
    }

    /// The same for a key that is not there yet.
    #[cold]
    fn apply_new(&self, table: &mut Table, at: &Located<'_>, now: Timestamp, op: Op) -> Reply {
        let numbers = at.limit.parameters();
        let mut state = State::Fresh;
        let reply = numbers.step(&mut state, now, op);
        let fits = match op {
            Op::Peek { cost } => cost == 0 || !reply.is_allowed() || self.has_place(),
            _ if state.is_fresh(now) => true,
            _ => {
                self.sweep_table(table, SWEPT_PER_INSERT, now);
                let reserved = self.reserve();
                if reserved {
                    self.insert(table, at, state);
                }
                reserved
            }
        };
        match op {
            _ if fits => reply,
            Op::Take { cost } | Op::Hold { cost, .. } | Op::Peek { cost } => {
                let unmade = numbers.step(&mut State::Fresh, now, Op::Peek { cost });
                self.placeless(unmade).unwrap_or(reply)
            }
            // Nothing is kept of it, and the figures say so.
            _ => numbers.step(&mut State::Fresh, now, Op::Peek { cost: 0 }),
        }
    }

    /// What a take that was not made is told instead of passing, when there is no place for its key.
    fn placeless(&self, unmade: Reply) -> Option<Reply> {
        match self.at_cap {
            AtCap::Allow => None,
            AtCap::Deny => Some(unmade.with_verdict(Verdict::Deny { retry_after: AT_CAP_RETRY })),
        }
    }

    fn locate_all<'n>(
        &self,
        takes: &[Take<'n>],
        texts: &'n mut Texts,
    ) -> SmallVec<[Located<'n>; 2]> {
        let numbered = takes.iter().map(|take| self.locate_numbered(&take.key()));
        numbered.collect::<Option<_>>().unwrap_or_else(|| {
            texts.resize_with(takes.len(), Vec::new);
            let pairs = takes.iter().zip(texts);
            pairs.map(|(take, text)| self.locate(&take.key(), text)).collect()
        })
    }

    /// One operation on each key of a plan, under all their locks at once.
    fn each<'a>(&self, plan: &Plan<'a>, op: impl Fn(u64) -> Op) -> Decision<'a> {
        let mut texts = Texts::default();
        let located = self.locate_all(plan.takes(), &mut texts);
        let mut locked = self.lock_all(located.iter().map(|at| at.spot.shard));
        let now = self.clock.now();
        let mut statuses = Statuses::new();
        for (take, at) in plan.takes().iter().zip(located) {
            let Some(table) = locked.table(at.spot.shard) else { continue };
            let limit = take.key().limit();
            let op = op(take.cost());
            let known = self.step(table, &at, now, op);
            let reply = known.unwrap_or_else(|| self.apply_new(table, &at, now, op));
            statuses.push(Status::new(limit, take.mode(), reply));
        }
        Decision::new(now, statuses)
    }

    /// First asks every key, then takes from all of them or from none.
    fn take_all<'a>(&self, takes: &[Take<'a>], permit: Option<PermitId>) -> Decision<'a> {
        let mut texts = Texts::default();
        let located = self.locate_all(takes, &mut texts);
        let mut locked = self.lock_all(located.iter().map(|at| at.spot.shard));
        let now = self.clock.now();
        // Swept before anyone is asked: what has been asked must not be dropped before it is taken.
        for at in &located {
            if let Some(table) = locked.table(at.spot.shard)
                && !self.contains(table, at)
            {
                self.sweep_table(table, SWEPT_PER_INSERT, now);
            }
        }
        let mut tried: SmallVec<[Tried<'a, '_>; 2]> = SmallVec::new();
        for (take, at) in takes.iter().zip(located) {
            let Some(table) = locked.table(at.spot.shard) else { continue };
            tried.push(self.try_take(table, take, at, now));
        }
        let passing: SmallVec<[bool; 16]> = tried.iter().map(|one| passes(one, &tried)).collect();
        for (one, passes) in tried.iter_mut().zip(passing) {
            if passes {
                self.commit(&mut locked, one, now, permit);
            } else if one.place == Place::Reserved {
                self.free_places(1);
            }
        }
        let status =
            |one: &Tried<'a, '_>| Status::new(one.take.key().limit(), one.take.mode(), one.reply);
        Decision::new(now, tried.iter().map(status))
    }

    fn try_take<'a, 'n>(
        &self,
        table: &mut Table,
        take: &Take<'a>,
        at: Located<'n>,
        now: Timestamp,
    ) -> Tried<'a, 'n> {
        let numbers = take.key().limit().parameters();
        let op = Op::Peek { cost: take.cost() };
        let known = self.step(table, &at, now, op);
        let (mut reply, mut place) = match known {
            Some(reply) => (reply, Place::Held),
            None => (numbers.step(&mut State::Fresh, now, op), Place::None),
        };
        if place == Place::None {
            if !reply.is_allowed() || take.cost() == 0 {
                place = Place::Held;
            } else if self.reserve() {
                place = Place::Reserved;
            } else {
                reply = self.placeless(reply).unwrap_or(reply);
            }
        }
        Tried { take: *take, at, reply, place }
    }

    fn commit(
        &self,
        locked: &mut Locked<'_>,
        one: &mut Tried<'_, '_>,
        now: Timestamp,
        permit: Option<PermitId>,
    ) {
        let Some(table) = locked.table(one.at.spot.shard) else { return };
        let numbers = one.take.key().limit().parameters();
        let cost = one.take.cost();
        let op = permit.map_or(Op::Take { cost }, |permit| Op::Hold { cost, permit });
        if let Some(reply) = self.step(table, &one.at, now, op) {
            one.reply = reply;
            return;
        }
        let mut state = State::Fresh;
        one.reply = numbers.step(&mut state, now, op);
        if one.place == Place::Reserved {
            self.insert(table, &one.at, state);
        }
    }
}

/// Whether a take is to happen: every enforced one passes, and so does every one of its own group.
fn passes(one: &Tried<'_, '_>, all: &[Tried<'_, '_>]) -> bool {
    let mode = one.take.mode();
    all.iter()
        .filter(|other| other.take.mode() == Mode::Enforce || other.take.mode() == mode)
        .all(|other| other.reply.is_allowed())
}
