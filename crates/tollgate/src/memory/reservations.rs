//! Reservations in the memory store. `lua/reservations.lua` of the Redis store mirrors it.

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::time::Duration;

use super::MemoryStore;
use super::decide::Texts;
use super::shard::{LocatedKey, Locked, SWEPT_PER_INSERT};
use super::take_all::SlotHolder;
use crate::algorithm::{Adjusted, Adjustment, Op, State};
use crate::costs::Costs;
use crate::plan::Plan;
use crate::reservation::{
    Draft, FinalCosts, GivenBack, LimitState, Record, ReservationToken, Reserved, ReservedTake,
    Settled, TakeOutcome, TakenAmount,
};
use crate::store::{StoreError, StoreErrorKind};
use crate::sync::{Mutex, MutexGuard};
use crate::time::{Clock, Timestamp};

/// Maximum number of expired entries that a call removes: more than a call adds, one for each of 16 limits and one for the
/// record.
const DROPPED_PER_CALL: usize = 64;

/// The records of the store, and what was given back to its token buckets.
#[derive(Debug, Default)]
pub(super) struct Reservations(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    records: HashMap<u128, Record>,
    /// By identity and subject. An entry is at least as old as the records that have noted it.
    given_back: HashMap<Box<str>, GivenBack>,
    /// When entries end, earliest first. An entry that ends later than it did has another one here.
    ends: BTreeSet<(Timestamp, EntryId)>,
    /// The current end of each sum of `given_back`.
    given_back_ends: HashMap<Box<str>, Timestamp>,
    record_ends: HashMap<u128, Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum EntryId {
    Record(u128),
    GivenBack(Box<str>),
}

impl Entries {
    fn drop_expired(&mut self, now: Timestamp) {
        for _ in 0..DROPPED_PER_CALL {
            if self.ends.first().is_none_or(|(end, _)| *end > now) {
                return;
            }
            match self.ends.pop_first() {
                Some((end, EntryId::Record(place)))
                    if self.record_ends.get(&place) == Some(&end) =>
                {
                    self.records.remove(&place);
                    self.record_ends.remove(&place);
                }
                Some((end, EntryId::GivenBack(key)))
                    if self.given_back_ends.get(&key) == Some(&end) =>
                {
                    self.given_back.remove(&key);
                    self.given_back_ends.remove(&key);
                }
                _ => {}
            }
        }
    }

    /// Returns the record of a token, unless it has ended.
    fn find(&self, place: u128, now: Timestamp) -> Option<&Record> {
        self.record_ends.get(&place).filter(|end| **end > now)?;
        self.records.get(&place)
    }

    fn keep_record(&mut self, record: Record, until: Timestamp) {
        let place = record.token().place();
        self.records.insert(place, record);
        self.record_ends.insert(place, until);
        self.ends.insert((until, EntryId::Record(place)));
    }

    fn given_back(&self, key: &str) -> GivenBack {
        self.given_back.get(key).copied().unwrap_or_default()
    }

    /// Keeps the sum of a key at least until a time.
    fn keep_given_back(&mut self, key: &str, until: Timestamp) {
        let end = self.given_back_ends.entry(key.into()).or_default();
        if until > *end {
            *end = until;
            self.ends.insert((until, EntryId::GivenBack(key.into())));
        }
    }
}

/// Key of a token bucket in [`Entries::given_back`].
fn bucket_key(take: &ReservedTake) -> Box<str> {
    format!("{}{{{}}}", take.limit.identity(), take.subject).into()
}

impl<C: Clock, H: BuildHasher> MemoryStore<C, H> {
    /// Takes every cost of the plan, or nothing, and keeps a record of it until the reservation is settled and for
    /// one window more. If there is a record in the place of the token, returns it and takes nothing.
    ///
    /// # Errors
    /// The store has as many reservations as it may have keys.
    pub fn reserve<'a>(&self, plan: &Plan<'a>, draft: &Draft) -> Result<Reserved<'a>, StoreError> {
        let mut entries = self.entries();
        let now = self.clock.now();
        entries.drop_expired(now);
        if let Some(record) = entries.find(draft.token.place(), now) {
            return Ok(Reserved::Known(record.clone()));
        }
        if entries.records.len() >= self.max_keys {
            let message = format!("the store has {} open reservations", self.max_keys);
            return Err(StoreError::new(StoreErrorKind::Overloaded, message));
        }
        let mut deficits = vec![0; plan.takes().len()];
        let ttl = draft.ttl;
        let holder = plan.permit().map(|permit| SlotHolder { permit, ttl });
        let decision = self.take_all_with(plan.takes(), holder, |index, deficit| {
            if let Some(slot) = deficits.get_mut(index) {
                *slot = deficit;
            }
        });
        if !decision.is_allowed() {
            return Ok(Reserved::Decided(decision, None));
        }
        let taken = |index: usize, take: &crate::plan::Take<'_>| {
            decision.took(take.mode()).then(|| TakenAmount {
                deficit: deficits.get(index).copied().unwrap_or(0),
                given_back: GivenBack::default(),
            })
        };
        let mut record = Record::new(draft.clone(), plan, decision.at(), taken);
        let until = decision.at() + Record::retention(draft.ttl, plan.takes());
        for take in record.takes_mut().iter_mut().filter(|take| counts_in_grains(take)) {
            let key = bucket_key(take);
            entries.keep_given_back(&key, until);
            if let Some(taken) = &mut take.taken {
                taken.given_back = entries.given_back(&key);
            }
        }
        entries.keep_record(record.clone(), until);
        Ok(Reserved::Decided(decision, Some(record)))
    }

    /// Settles the reservation of a token: gives back what it did not use, takes what it used more, and releases its
    /// slots. Only the first settlement changes anything. Returns `None` if no record has this token, or it is of
    /// another tenant.
    pub fn settle(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
        finals: &FinalCosts,
    ) -> Option<Settled> {
        let mut entries = self.entries();
        let now = self.clock.now();
        let mut record = entries.find(token.place(), now)?.clone();
        if !record.is_of(token, tenant) {
            return None;
        }
        if let Some((costs, outcomes)) = record.settled() {
            let units = record.unit_outcomes(costs, outcomes);
            return Some(Settled::new(units, self.states_of(&record)).repeated());
        }
        let costs = finals.of_estimate(record.costs());
        let outcomes = self.adjust_all(&mut entries, &record, &costs);
        if let Some(permit) = record.permit() {
            let _ = self.release(&permit);
        }
        let units = record.unit_outcomes(&costs, &outcomes);
        let settled = Settled::new(units, self.states_of(&record));
        record.settle(costs, outcomes);
        entries.records.insert(token.place(), record);
        Some(settled)
    }

    /// Keeps the record of a reservation that another store has granted `age` ago. No effect if there is a record in its
    /// place.
    pub fn adopt_reservation(&self, record: &Record, age: Duration) {
        let mut entries = self.entries();
        let now = self.clock.now();
        if entries.find(record.token().place(), now).is_none() {
            let until = now + record.remaining_retention();
            entries.keep_record(record.rebased(now, age), until);
        }
    }

    /// Extends a reservation and its slots by its time to live from now. Returns when it expires, or `None` if it is
    /// unknown, settled, or has lost a slot.
    pub fn renew_reservation(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
    ) -> Option<Timestamp> {
        let mut entries = self.entries();
        let now = self.clock.now();
        entries.drop_expired(now);
        let mut record = entries.find(token.place(), now)?.clone();
        if !record.is_of(token, tenant) || record.settled().is_some() {
            return None;
        }
        if let Some(permit) = record.permit() {
            self.renew(&permit)?;
        }
        record.renew(now);
        let until = now + record.remaining_retention();
        let expires_at = record.expires_at();
        for take in record.takes().iter().filter(|take| counts_in_grains(take)) {
            entries.keep_given_back(&bucket_key(take), until);
        }
        entries.keep_record(record, until);
        Some(expires_at)
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.reservations.0.lock()
    }

    /// Changes every take of a record to its final amount, with all shards locked.
    fn adjust_all(
        &self,
        entries: &mut Entries,
        record: &Record,
        costs: &Costs,
    ) -> Vec<TakeOutcome> {
        let keys: Vec<_> = record.takes().iter().map(ReservedTake::key).collect();
        let mut texts = Texts::default();
        texts.resize_with(keys.len(), Vec::new);
        let pairs = keys.iter().zip(&mut texts);
        let located: Vec<_> = pairs.map(|(key, text)| self.locate(key, text)).collect();
        let mut locked = self.lock_all(located.iter().map(|at| at.location.shard));
        let now = locked.now(&self.clock);
        let mut outcomes = Vec::with_capacity(keys.len());
        for (take, at) in record.takes().iter().zip(&located) {
            let key = bucket_key(take);
            let given_back = entries.given_back(&key);
            let adjustment = take.adjustment((record.taken_at(), now), costs, given_back);
            outcomes.push(adjustment.map_or_else(TakeOutcome::default, |adjustment| {
                let adjusted = self.adjust(&mut locked, at, now, adjustment);
                if adjusted.grains > 0 {
                    entries.given_back.insert(key, given_back.plus(adjusted.grains, now));
                }
                TakeOutcome::of(adjustment, &adjusted)
            }));
        }
        outcomes
    }

    /// Adjusts one key. A key that does not exist has nothing to give back.
    fn adjust(
        &self,
        locked: &mut Locked<'_>,
        at: &LocatedKey<'_>,
        now: Timestamp,
        adjustment: Adjustment,
    ) -> Adjusted {
        let parameters = at.limit.parameters();
        let mut fresh = State::Fresh;
        let Some(table) = locked.table(at.location.shard) else {
            // Unreachable: all shards of the record are locked.
            return parameters.adjust(&mut fresh, now, adjustment);
        };
        let known = self.with_state(table, at, |state| parameters.adjust(state, now, adjustment));
        if let Some(adjusted) = known {
            return adjusted;
        }
        let adjusted = parameters.adjust(&mut fresh, now, adjustment);
        if !fresh.is_fresh(now) {
            self.sweep_table(table, SWEPT_PER_INSERT, now);
            if self.reserve_space() {
                self.insert(table, at, fresh);
            }
        }
        adjusted
    }

    /// Returns the current figures of a record's limits.
    fn states_of(&self, record: &Record) -> Vec<LimitState> {
        let state = |take: &ReservedTake| {
            let (reply, _) = self.apply(&take.key(), Op::Peek { cost: 0 });
            take.state(reply)
        };
        record.takes().iter().map(state).collect()
    }
}

/// Returns whether a take has a deficit, which other settlements reduce.
fn counts_in_grains(take: &ReservedTake) -> bool {
    take.taken.is_some() && take.limit.parameters().as_token_bucket().is_some()
}
