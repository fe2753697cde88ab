//! Release and renewal of permits. The keys are found by the identities and subjects in the permit.

use std::hash::BuildHasher;

use super::MemoryStore;
use super::registry::{LimitId, Registered};
use super::shard::Location;
use super::table::Table;
use crate::algorithm::{PermitId, State};
use crate::decision::{HeldKey, Permit};
use crate::sync::atomic::Ordering;
use crate::time::{Clock, Timestamp};

impl<C: Clock, H: BuildHasher> MemoryStore<C, H> {
    /// Releases the slots of the permit. Returns false if it holds none; expired slots are not held.
    pub fn release(&self, permit: &Permit) -> bool {
        let mut texts = vec![Vec::new(); permit.held().len()];
        let locations = self.locations_of(permit, &mut texts);
        let mut locked = self.lock_all(locations.iter().flatten().map(|location| location.shard));
        let now = locked.now(&self.clock);
        let mut released = false;
        for location in locations.iter().flatten() {
            if let Some(table) = locked.table(location.shard) {
                released |= self.release_key(table, location, now, permit.id());
            }
        }
        released
    }

    /// Extends the permit's slots to now plus their original TTL and returns the earliest expiry. All or
    /// nothing: returns `None` and changes nothing if the permit holds no slot of any one of its keys.
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
    /// let permit = Permit::of(&plan, &store.take(&plan)).ok_or("no slot was free")?;
    ///
    /// clock.advance(Duration::from_secs(29));
    /// assert!(store.renew(&permit).is_some());
    /// clock.advance(Duration::from_secs(30));
    /// assert!(store.renew(&permit).is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn renew(&self, permit: &Permit) -> Option<Timestamp> {
        let mut texts = vec![Vec::new(); permit.held().len()];
        let locations = self.locations_of(permit, &mut texts);
        let locations = locations.into_iter().collect::<Option<Vec<_>>>()?;
        let mut locked = self.lock_all(locations.iter().map(|location| location.shard));
        let now = locked.now(&self.clock);
        for location in &locations {
            let state = self.state_at(locked.table(location.shard)?, location)?;
            if !state.holds(now, permit.id()) {
                return None;
            }
        }
        let mut first: Option<Timestamp> = None;
        for location in &locations {
            let until =
                self.state_at(locked.table(location.shard)?, location)?.renew(now, permit.id())?;
            first = Some(first.map_or(until, |first| first.min(until)));
        }
        first
    }

    /// Returns the locations of the permit's keys; `None` for keys of limits unknown to this store.
    fn locations_of<'n>(
        &self,
        permit: &'n Permit,
        texts: &'n mut [Vec<u8>],
    ) -> Vec<Option<Location<'n>>> {
        let pairs = permit.held().iter().zip(texts);
        pairs.map(|(key, text)| self.location_of(key, text)).collect()
    }

    fn location_of<'n>(&self, key: &'n HeldKey, text: &'n mut Vec<u8>) -> Option<Location<'n>> {
        let identity = self.registry.read().find_identity(key.identity())?;
        let registered = Registered { identity, limit: LimitId::NONE };
        Some(self.location_in(registered, key.identity(), key.subject(), text))
    }

    fn state_at<'t>(&self, table: &'t mut Table, location: &Location<'_>) -> Option<&'t mut State> {
        table.state_mut(location.hash, &location.lookup, &self.registry)
    }

    /// Releases the slots of one key, and drops the key immediately if it has no slots left.
    fn release_key(
        &self,
        table: &mut Table,
        location: &Location<'_>,
        now: Timestamp,
        permit: PermitId,
    ) -> bool {
        let Some(state) = self.state_at(table, location) else { return false };
        let released = state.release(now, permit);
        if released && state.is_fresh(now) && self.remove(table, location) {
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
        released
    }
}
