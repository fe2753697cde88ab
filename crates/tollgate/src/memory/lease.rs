//! Leases from the memory store: all takes of a plan or none. `lua/lease.lua` of the Redis store mirrors it.

use std::hash::BuildHasher;

use smallvec::SmallVec;

use super::MemoryStore;
use super::shard::{LocatedKey, Locked, SWEPT_PER_INSERT};
use crate::algorithm::{Op, Reply, State};
use crate::lease::{LeaseReply, TakeGrant, WantedLease};
use crate::plan::Plan;
use crate::time::{Clock, Timestamp};

/// A key of the plan, and its figures before the lease.
struct Peeked<'n> {
    at: LocatedKey<'n>,
    reply: Reply,
    is_new: bool,
}

impl<C: Clock, H: BuildHasher> MemoryStore<C, H> {
    /// Leases from every key of the plan, or takes the costs, or nothing. `None` if the plan cannot be leased, or a new
    /// key does not fit the store; then nothing was taken.
    #[must_use]
    pub fn lease(&self, plan: &Plan<'_>, wanted: &WantedLease) -> Option<LeaseReply> {
        if !wanted.fits(plan) {
            return None;
        }
        let mut texts: Vec<Vec<u8>> = Vec::new();
        texts.resize_with(plan.takes().len(), Vec::new);
        let pairs = plan.takes().iter().zip(&mut texts);
        let located: SmallVec<[LocatedKey<'_>; 2]> =
            pairs.map(|(take, text)| self.locate(&take.key(), text)).collect();
        let mut locked = self.lock_all(located.iter().map(|at| at.location.shard));
        let now = locked.now(&self.clock);
        let peeked = self.peek_all(&mut locked, located, wanted, now)?;
        if !peeked.iter().all(|one| one.reply.is_allowed()) {
            peeked.iter().filter(|one| one.is_new).for_each(|_| self.unreserve(1));
            let refused = peeked.iter().map(|one| TakeGrant { amount: 0, reply: one.reply });
            return Some(LeaseReply::new(now, refused));
        }
        let room = peeked.iter().map(|one| (one.at.limit, one.reply.remaining()));
        let amounts = wanted.granted(room);
        let grants = peeked.iter().zip(wanted.costs()).enumerate().map(|(index, (one, cost))| {
            let amount = amounts.as_ref().and_then(|amounts| amounts.get(index)).copied();
            let take = Op::Take { cost: *cost };
            let hold = wanted.hold();
            let op = amount.map_or(take, |amount| Op::Lease { amount, hold });
            let reply = self.apply_peeked(&mut locked, one, now, op);
            TakeGrant { amount: amount.unwrap_or(0), reply }
        });
        Some(LeaseReply::new(now, grants))
    }

    /// Peeks at every key, and reserves space for the new ones; `None` if the store is full.
    fn peek_all<'n>(
        &self,
        locked: &mut Locked<'_>,
        located: SmallVec<[LocatedKey<'n>; 2]>,
        wanted: &WantedLease,
        now: Timestamp,
    ) -> Option<SmallVec<[Peeked<'n>; 2]>> {
        // Sweep first: a key must not be dropped between its peek and its lease.
        for at in &located {
            let table = locked.table(at.location.shard)?;
            if !self.contains(table, at) {
                self.sweep_table(table, SWEPT_PER_INSERT, now);
            }
        }
        let mut peeked: SmallVec<[Peeked<'n>; 2]> = SmallVec::new();
        for (at, cost) in located.into_iter().zip(wanted.costs()) {
            let table = locked.table(at.location.shard)?;
            let op = Op::Peek { cost: *cost };
            let known = self.step(table, &at, now, op);
            if known.is_none() && !self.reserve_space() {
                peeked.iter().filter(|one| one.is_new).for_each(|_| self.unreserve(1));
                return None;
            }
            let fresh = || at.limit.parameters().step(&mut State::Fresh, now, op);
            let reply = known.unwrap_or_else(fresh);
            peeked.push(Peeked { is_new: known.is_none(), at, reply });
        }
        Some(peeked)
    }

    fn apply_peeked(
        &self,
        locked: &mut Locked<'_>,
        one: &Peeked<'_>,
        now: Timestamp,
        op: Op,
    ) -> Reply {
        let Some(table) = locked.table(one.at.location.shard) else { return one.reply };
        if !one.is_new {
            return self.step(table, &one.at, now, op).unwrap_or(one.reply);
        }
        let mut state = State::Fresh;
        let reply = one.at.limit.parameters().step(&mut state, now, op);
        if state.is_fresh(now) {
            self.unreserve(1);
        } else {
            self.insert(table, &one.at, state);
        }
        reply
    }
}
