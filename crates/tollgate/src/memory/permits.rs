//! Permits: slots given back and kept longer, found by what the permit itself tells.

use std::hash::BuildHasher;
use std::sync::atomic::Ordering;

use super::MemoryStore;
use super::register::{LimitNumber, Registered};
use super::shard::Spot;
use super::table::Table;
use crate::algorithm::State;
use crate::clock::Clock;
use crate::permit::{HeldKey, Permit, PermitId};
use crate::time::Timestamp;

impl<C: Clock, H: BuildHasher> MemoryStore<C, H> {
    /// Gives back what the permit still holds; true if that was anything. Slots that have returned by
    /// themselves are no longer held.
    pub fn release(&self, permit: &Permit) -> bool {
        let mut texts = vec![Vec::new(); permit.held().len()];
        let spots = self.spots_of(permit, &mut texts);
        let mut locked = self.lock_all(spots.iter().flatten().map(|spot| spot.shard));
        let now = self.clock.now();
        let mut released = false;
        for spot in spots.iter().flatten() {
            if let Some(table) = locked.table(spot.shard) {
                released |= self.release_key(table, spot, now, permit.id());
            }
        }
        released
    }

    /// Lets the permit's slots last for their own length from now, and tells when the first of them
    /// returns. All or nothing: none, and nothing has changed, if the permit has lost any of its keys.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Key, Permit, PermitId, Limit, ManualClock, MemoryStore, Plan, Subject, Take};
    ///
    /// let clock = ManualClock::new();
    /// let store = MemoryStore::builder().clock(clock.clone()).build();
    /// let (limit, subject) = (Limit::concurrency(1, Duration::from_secs(30))?, Subject::of(["c1"]));
    /// let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1)])?;
    /// let plan = plan.with_permit(PermitId::random());
    /// let permit = Permit::of(&plan, &store.take(&plan)).ok_or("a slot was free")?;
    ///
    /// clock.advance(Duration::from_secs(29));
    /// assert!(store.renew(&permit).is_some());
    /// clock.advance(Duration::from_secs(30));
    /// assert!(store.renew(&permit).is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn renew(&self, permit: &Permit) -> Option<Timestamp> {
        let mut texts = vec![Vec::new(); permit.held().len()];
        let spots = self.spots_of(permit, &mut texts);
        let spots = spots.into_iter().collect::<Option<Vec<_>>>()?;
        let mut locked = self.lock_all(spots.iter().map(|spot| spot.shard));
        let now = self.clock.now();
        for spot in &spots {
            let state = self.state_at(locked.table(spot.shard)?, spot)?;
            if !state.holds(now, permit.id()) {
                return None;
            }
        }
        let mut first: Option<Timestamp> = None;
        for spot in &spots {
            let until = self.state_at(locked.table(spot.shard)?, spot)?.renew(now, permit.id())?;
            first = Some(first.map_or(until, |first| first.min(until)));
        }
        first
    }

    /// Where the permit's keys live; none for those of limits that this store has never met.
    fn spots_of<'n>(&self, permit: &'n Permit, texts: &'n mut [Vec<u8>]) -> Vec<Option<Spot<'n>>> {
        let pairs = permit.held().iter().zip(texts);
        pairs.map(|(key, text)| self.spot_of(key, text)).collect()
    }

    fn spot_of<'n>(&self, key: &'n HeldKey, text: &'n mut Vec<u8>) -> Option<Spot<'n>> {
        let scope = self.register.read().find_scope(key.identity())?;
        let registered = Registered { scope, limit: LimitNumber::NONE };
        Some(self.spot_in(registered, key.identity(), key.subject(), text))
    }

    fn state_at<'t>(&self, table: &'t mut Table, spot: &Spot<'_>) -> Option<&'t mut State> {
        table.get_mut(spot.hash, &spot.name, &self.register)?.state_mut()
    }

    /// What has no slot in use any more is forgotten at once, as a sweep would sooner or later.
    fn release_key(
        &self,
        table: &mut Table,
        spot: &Spot<'_>,
        now: Timestamp,
        permit: PermitId,
    ) -> bool {
        let Some(state) = self.state_at(table, spot) else { return false };
        let released = state.release(now, permit);
        if released && state.is_fresh(now) && self.remove(table, spot) {
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
        released
    }
}
