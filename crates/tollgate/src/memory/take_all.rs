//! Takes of plans, the general case: evaluates every take with all shards of the plan locked, then applies all or none.

use std::hash::BuildHasher;
use std::time::Duration;

use smallvec::SmallVec;

use super::MemoryStore;
use super::decide::Texts;
use super::shard::{LocatedKey, Locked, SWEPT_PER_INSERT};
use super::table::Table;
use crate::algorithm::{Op, PermitId, Reply, State};
use crate::decision::{Decision, Status};
use crate::plan::{Mode, Take};
use crate::time::{Clock, Timestamp};

/// An evaluated take that is not applied yet.
struct Evaluated<'a, 'n> {
    take: Take<'a>,
    at: LocatedKey<'n>,
    reply: Reply,
    space: Space,
}

/// What holds the slots of a plan, and for how long at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlotHolder {
    pub(super) permit: PermitId,
    pub(super) ttl: Duration,
}

impl SlotHolder {
    /// A permit that holds slots for the time of their limits.
    pub(super) const fn of(permit: PermitId) -> Self {
        Self { permit, ttl: Duration::MAX }
    }
}

/// Space for the key of a take in the store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    /// The key exists, or the take does not store one.
    NotNeeded,
    /// The key is new and counted in advance.
    Reserved,
    /// The key is new and the store is full.
    Unavailable,
}

impl<C: Clock, H: BuildHasher> MemoryStore<C, H> {
    /// Evaluates every take, then applies all of them or none.
    pub(super) fn take_all<'a>(
        &self,
        takes: &[Take<'a>],
        holder: Option<SlotHolder>,
    ) -> Decision<'a> {
        self.take_all_with(takes, holder, |_, _| {})
    }

    /// As [`take_all`](Self::take_all). Calls `on_taken` with the index and the deficit of each take that is applied.
    pub(super) fn take_all_with<'a>(
        &self,
        takes: &[Take<'a>],
        holder: Option<SlotHolder>,
        mut on_taken: impl FnMut(usize, u64),
    ) -> Decision<'a> {
        let mut texts = Texts::default();
        let located = self.locate_all(takes, &mut texts);
        let mut locked = self.lock_all(located.iter().map(|at| at.location.shard));
        let now = locked.now(&self.clock);
        // Sweep before the evaluation: an evaluated key must not be dropped before its take is applied.
        for at in &located {
            if let Some(table) = locked.table(at.location.shard)
                && !self.contains(table, at)
            {
                self.sweep_table(table, SWEPT_PER_INSERT, now);
            }
        }
        let mut evaluated: SmallVec<[Evaluated<'a, '_>; 2]> = SmallVec::new();
        for (take, at) in takes.iter().zip(located) {
            let Some(table) = locked.table(at.location.shard) else { continue };
            evaluated.push(self.evaluate(table, take, at, now));
        }
        let passing: SmallVec<[bool; 16]> =
            evaluated.iter().map(|one| passes(one, &evaluated)).collect();
        for (index, (one, passes)) in evaluated.iter_mut().zip(passing).enumerate() {
            if passes {
                on_taken(index, self.commit(&mut locked, one, now, holder));
            } else if one.space == Space::Reserved {
                self.unreserve(1);
            }
        }
        let status = |one: &Evaluated<'a, '_>| {
            Status::new(one.take.key().limit(), one.take.mode(), one.reply)
        };
        Decision::new(now, evaluated.iter().map(status))
    }

    fn evaluate<'a, 'n>(
        &self,
        table: &mut Table,
        take: &Take<'a>,
        at: LocatedKey<'n>,
        now: Timestamp,
    ) -> Evaluated<'a, 'n> {
        let parameters = take.key().limit().parameters();
        let op = Op::Peek { cost: take.cost() };
        let known = self.step(table, &at, now, op);
        let (mut reply, mut space) = match known {
            Some(reply) => (reply, Space::NotNeeded),
            None => (parameters.step(&mut State::Fresh, now, op), Space::Unavailable),
        };
        if space == Space::Unavailable {
            if !reply.is_allowed() || take.cost() == 0 {
                space = Space::NotNeeded;
            } else if self.reserve_space() {
                space = Space::Reserved;
            } else {
                reply = self.at_cap_reply(reply).unwrap_or(reply);
            }
        }
        Evaluated { take: *take, at, reply, space }
    }

    /// Applies a take. Returns the deficit of its token bucket afterwards.
    fn commit(
        &self,
        locked: &mut Locked<'_>,
        one: &mut Evaluated<'_, '_>,
        now: Timestamp,
        holder: Option<SlotHolder>,
    ) -> u64 {
        let Some(table) = locked.table(one.at.location.shard) else { return 0 };
        let parameters = one.take.key().limit().parameters();
        let cost = one.take.cost();
        let hold = |SlotHolder { permit, ttl }| Op::Hold { cost, permit, ttl };
        let op = holder.map_or(Op::Take { cost }, hold);
        if let Some(reply) = self.step(table, &one.at, now, op) {
            one.reply = reply;
            let deficit = |state: &mut State| parameters.deficit(state, now);
            return self.with_state(table, &one.at, deficit).unwrap_or(0);
        }
        let mut state = State::Fresh;
        one.reply = parameters.step(&mut state, now, op);
        let deficit = parameters.deficit(&state, now);
        if one.space == Space::Reserved {
            self.insert(table, &one.at, state);
        }
        deficit
    }
}

/// Returns true if a take is applied: all enforced takes and all takes of its own shadow group pass.
fn passes(one: &Evaluated<'_, '_>, all: &[Evaluated<'_, '_>]) -> bool {
    let mode = one.take.mode();
    all.iter()
        .filter(|other| other.take.mode() == Mode::Enforce || other.take.mode() == mode)
        .all(|other| other.reply.is_allowed())
}
