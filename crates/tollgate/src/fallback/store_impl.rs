//! The [`Store`] implementation of [`FallbackStore`].

use std::time::Duration;

use super::FallbackStore;
use super::local_decisions::Operation;
use crate::decision::{Decision, Permit, Status};
use crate::plan::{Key, Plan};
use crate::reservation::{Draft, FinalCosts, ReservationToken, Reserved, Settled};
use crate::store::{Listing, Page, Store, StoreError};
use crate::time::{Clock, Timestamp};

/// `release` and `renew` try the outage ledger, the local store and the shared store: each may hold slots of the permit.
impl<S: Store, C: Clock, L: Store> Store for FallbackStore<S, C, L> {
    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.decide(Operation::Take, plan).await
    }

    async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.decide(Operation::Peek, plan).await
    }

    async fn refund<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.decide(Operation::Refund, plan).await
    }

    async fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Result<Decision<'a>, StoreError> {
        self.decide(Operation::Debit(age), plan).await
    }

    /// During an outage the pause holds in this node, and is replayed in the shared store afterwards. Fails if the
    /// local store fails; then the key is paused in the shared store only.
    async fn pause(&self, key: &Key<'_>, length: Duration) -> Result<(), StoreError> {
        let in_local = self.report_local(self.local.pause(key, length).await);
        if self.call_shared_only(self.store.pause(key, length)).await.is_err() {
            let limit = self.shares.get(key.limit()).limit;
            self.ledger.lock().pause(key.subject(), &limit, self.clock.now(), length);
        }
        in_local
    }

    async fn reset(&self, key: &Key<'_>) -> Result<(), StoreError> {
        self.call_shared_only(self.store.reset(key)).await?;
        self.reset_on_node(key).await
    }

    async fn release(&self, permit: &Permit) -> Result<bool, StoreError> {
        // The ledger also has slots of `allow` rules, which the local store does not count.
        let in_ledger = self.ledger.lock().release(permit, self.clock.now());
        let in_local = self.report_local(self.local.release(permit).await);
        let in_node = in_ledger || matches!(in_local, Ok(true));
        match self.call_shared_only(self.store.release(permit)).await {
            Ok(in_shared) if in_node || in_shared => Ok(true),
            Ok(_) => in_local,
            Err(_) if in_node => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, StoreError> {
        let in_ledger = self.ledger.lock().renew(permit, self.clock.now());
        let in_local = self.report_local(self.local.renew(permit).await);
        let in_node = in_local.as_ref().ok().copied().flatten().or(in_ledger);
        match self.call_shared_only(self.store.renew(permit)).await {
            Ok(in_shared) if in_shared.or(in_node).is_some() => Ok(in_shared.or(in_node)),
            Ok(_) => in_local,
            Err(_) if in_node.is_some() => Ok(in_node),
            Err(error) => Err(error),
        }
    }

    async fn stats<'a>(&self, key: &Key<'a>) -> Result<Status<'a>, StoreError> {
        self.call_shared_only(self.store.stats(key)).await
    }

    async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        self.call_shared_only(self.store.list(listing)).await
    }

    async fn reserve<'a>(
        &self,
        plan: &Plan<'a>,
        draft: &Draft,
    ) -> Result<Reserved<'a>, StoreError> {
        self.reserve_anywhere(plan, draft).await
    }

    async fn settle(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
        finals: &FinalCosts,
    ) -> Result<Option<Settled>, StoreError> {
        self.settle_anywhere(token, tenant, finals).await
    }

    async fn renew_reservation(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
    ) -> Result<Option<Timestamp>, StoreError> {
        self.renew_anywhere(token, tenant).await
    }

    fn reservation_hint(&self, plan: &Plan<'_>) -> u32 {
        self.store.reservation_hint(plan)
    }

    async fn maintain(&self) {
        Self::maintain(self).await;
    }
}
