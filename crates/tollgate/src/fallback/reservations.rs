//! Reservations while the shared store is lost, and of limits that it does not count.
//!
//! A reservation that this node has granted is charged like other admissions: by its share, and by a debit when the shared
//! store is back. Then the shared store gets its record, so that other nodes can settle it. Settlements of other
//! reservations are kept during an outage and replayed once: a store settles a reservation only once, so sending one again
//! is safe.

use std::time::Duration;

use super::FallbackStore;
use super::granted::{
    Claim, KeptSettlement, MAX_KEPT, MAX_UNKNOWN_REPLIES, NodeReservation, too_many,
};
use super::local_decisions::{LocalReason, Operation};
use super::shared_calls::is_overloaded;
use crate::decision::Decision;
use crate::plan::{Distributed, Plan, Take};
use crate::reservation::{
    Draft, FinalCosts, LimitState, Record, ReservationToken, Reserved, Settled, TakeOutcome,
    TakenAmount,
};
use crate::store::{Store, StoreError, StoreErrorKind};
use crate::time::{Clock, Timestamp};

impl<S: Store, C: Clock, L: Store> FallbackStore<S, C, L> {
    pub(super) async fn reserve_anywhere<'a>(
        &self,
        plan: &Plan<'a>,
        draft: &Draft,
    ) -> Result<Reserved<'a>, StoreError> {
        if let Some(known) = self.granted(&draft.token) {
            return Ok(Reserved::Known(known.record));
        }
        let token = draft.token.with_hint(self.store.reservation_hint(plan));
        let draft = &Draft { token, ..draft.clone() };
        let are_all = |wanted| plan.takes().iter().all(|take| self.distributed(take) == wanted);
        let decision = if are_all(Distributed::On) {
            match self.reserve_shared(plan, draft).await? {
                Ok(reserved) => return Ok(reserved),
                Err(reason) => {
                    Box::pin(self.decide_in_outage(Operation::Take, plan, reason)).await?
                }
            }
        } else if are_all(Distributed::Off) {
            return self.report_local(self.local.reserve(plan, draft).await);
        } else {
            self.decide(Operation::Take, plan).await?
        };
        let record = decision.is_allowed().then(|| self.keep(plan, draft, &decision));
        Ok(Reserved::Decided(decision, record.transpose()?))
    }

    /// Reserves in the shared store, or returns why this node must decide.
    async fn reserve_shared<'a>(
        &self,
        plan: &Plan<'a>,
        draft: &Draft,
    ) -> Result<Result<Reserved<'a>, LocalReason>, StoreError> {
        if !self.breaker.is_closed() {
            return Ok(Err(LocalReason::BreakerOpen));
        }
        let permission = self.breaker.permission();
        match self.store.reserve(plan, draft).await {
            Ok(reserved) => {
                self.breaker.record_success();
                Ok(Ok(reserved))
            }
            Err(error) if is_overloaded(&error) => Err(self.report_overload(error)),
            Err(error) if error.kind() == StoreErrorKind::Unsupported => Err(error),
            Err(error) => {
                self.record_failure(permission, &error);
                Ok(Err(LocalReason::after(&error)))
            }
        }
    }

    /// Keeps the record of a reservation that this node has granted.
    fn keep(
        &self,
        plan: &Plan<'_>,
        draft: &Draft,
        decision: &Decision<'_>,
    ) -> Result<Record, StoreError> {
        let now = self.clock.now();
        let taken =
            |_: usize, take: &Take<'_>| decision.took(take.mode()).then(TakenAmount::default);
        let record = Record::new(draft.clone(), plan, now, taken);
        let granted = NodeReservation::new(record.clone(), plan, decision, now);
        let mut entries = self.reservations.0.lock();
        entries.granted.retain(|_, granted| granted.until > now);
        if entries.granted.len() >= MAX_KEPT {
            // The quota stays charged, as for a reservation that is not settled.
            return Err(too_many("reservations"));
        }
        entries.granted.insert(draft.token.place(), granted);
        Ok(record)
    }

    pub(super) async fn settle_anywhere(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
        finals: &FinalCosts,
    ) -> Result<Option<Settled>, StoreError> {
        if let Some(granted) = self.granted(token) {
            return match granted.record.is_of(token, tenant) {
                true => self.settle_granted(token, tenant, finals).await.map(Some),
                false => Ok(None),
            };
        }
        if let Ok(Some(settled)) = self.local.settle(token, tenant, finals).await {
            return Ok(Some(settled));
        }
        if let Some(kept) = self.kept(token) {
            let is_of =
                kept.token == *token && (tenant.is_none() || tenant == kept.tenant.as_deref());
            return Ok(is_of.then(|| Settled::kept(&kept.finals).repeated()));
        }
        if self.breaker.is_closed() {
            let permission = self.breaker.permission();
            match self.store.settle(token, tenant, finals).await {
                Ok(settled) => {
                    self.breaker.record_success();
                    return Ok(settled);
                }
                Err(error) if is_overloaded(&error) => return Err(self.report_overload(error)),
                Err(error) if !error.is_transient() => return Err(error),
                Err(error) => self.record_failure(permission, &error),
            }
        }
        self.keep_settlement(token, tenant, finals).map(Some)
    }

    /// Settles a reservation of this node: refunds and debits as any other request.
    async fn settle_granted(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
        finals: &FinalCosts,
    ) -> Result<Settled, StoreError> {
        let (granted, costs) = match self.claim(token, finals) {
            Claim::Open(granted, costs) => (granted, costs),
            Claim::Settled => return self.repeat_granted(token).await,
            Claim::Moving => return self.keep_settlement(token, tenant, finals),
        };
        let mut changes = granted.changes(&costs, self.clock.now());
        let refunded = match self.decide(Operation::Refund, &changes.refund).await {
            Ok(refunded) => refunded,
            Err(error) => {
                // Nothing was changed: the caller may try again.
                self.update(token, |kept| kept.record.reopen());
                return Err(error);
            }
        };
        let debited = self.decide(Operation::Debit(Duration::ZERO), &changes.debit).await;
        if debited.is_err() {
            changes.collect_nothing(&costs, &granted.record);
        }
        if let Some(permit) = granted.record.permit() {
            // Slots that are not released now expire.
            let _ = self.release(&permit).await;
        }
        let units = granted.record.unit_outcomes(&costs, &changes.outcomes);
        let mut settled = Settled::new(units, self.states(&granted).await);
        settled.is_degraded =
            refunded.is_degraded() || debited.is_ok_and(|debited| debited.is_degraded());
        self.update(token, |kept| kept.record.settle(costs, changes.outcomes));
        Ok(settled)
    }

    /// Changes what this node keeps of a reservation, if it still does.
    fn update(&self, token: &ReservationToken, change: impl FnOnce(&mut NodeReservation)) {
        let mut entries = self.reservations.0.lock();
        if let Some(kept) = entries.granted.get_mut(&token.place()) {
            change(kept);
        }
    }

    /// Marks a reservation of this node as settled, if it is open.
    fn claim(&self, token: &ReservationToken, finals: &FinalCosts) -> Claim {
        let mut entries = self.reservations.0.lock();
        let Some(kept) = entries.granted.get_mut(&token.place()) else { return Claim::Moving };
        if kept.record.settled().is_some() {
            return Claim::Settled;
        }
        if kept.is_moving {
            return Claim::Moving;
        }
        let granted = Box::new(kept.clone());
        let costs = finals.of_estimate(kept.record.costs());
        kept.record.settle(costs.clone(), vec![TakeOutcome::default(); kept.record.takes().len()]);
        Claim::Open(granted, costs)
    }

    async fn repeat_granted(&self, token: &ReservationToken) -> Result<Settled, StoreError> {
        let granted = self.granted(token).ok_or_else(|| too_many("reservations"))?;
        let units = granted
            .record
            .settled()
            .map(|(costs, outcomes)| granted.record.unit_outcomes(costs, outcomes));
        let states = self.states(&granted).await;
        Ok(Settled::new(units.unwrap_or_default(), states).repeated())
    }

    /// Returns the current figures of a record's limits; none if they are not known.
    async fn states(&self, granted: &NodeReservation) -> Vec<LimitState> {
        let record = &granted.record;
        let pairs = record.takes().iter().zip(&granted.distributions);
        let peeks = pairs.map(|(take, how)| Take::new(take.key(), 0).with_distribution(*how));
        let plan = Plan::of_distinct(peeks);
        let Ok(peeked) = self.decide(Operation::Peek, &plan).await else { return Vec::new() };
        let pairs = record.takes().iter().zip(peeked.statuses());
        pairs.map(|(take, status)| take.state(status.reply())).collect()
    }

    fn keep_settlement(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
        finals: &FinalCosts,
    ) -> Result<Settled, StoreError> {
        let mut entries = self.reservations.0.lock();
        if entries.settlements.len() >= MAX_KEPT {
            return Err(too_many("settlements"));
        }
        let (tenant, finals) = (tenant.map(Into::into), finals.clone());
        let kept = entries.settlements.entry(token.place());
        let kept =
            kept.or_insert(KeptSettlement { token: *token, tenant, finals, unknown_replies: 0 });
        Ok(Settled::kept(&kept.finals))
    }

    pub(super) async fn renew_anywhere(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
    ) -> Result<Option<Timestamp>, StoreError> {
        if let Some(granted) = self.granted(token) {
            return self.renew_granted(token, tenant, &granted).await;
        }
        if let Ok(Some(renewed)) = self.local.renew_reservation(token, tenant).await {
            return Ok(Some(renewed));
        }
        self.call_shared_only(self.store.renew_reservation(token, tenant)).await
    }

    async fn renew_granted(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
        granted: &NodeReservation,
    ) -> Result<Option<Timestamp>, StoreError> {
        if !granted.record.is_of(token, tenant) || granted.record.settled().is_some() {
            return Ok(None);
        }
        if let Some(permit) = granted.record.permit()
            && self.renew(&permit).await?.is_none()
        {
            return Ok(None);
        }
        let now = self.clock.now();
        let mut entries = self.reservations.0.lock();
        let Some(kept) = entries.granted.get_mut(&token.place()) else { return Ok(None) };
        kept.record.renew(now);
        kept.until = kept.until.max(now + kept.record.remaining_retention());
        Ok(Some(kept.record.expires_at()))
    }

    /// Sends the records of this node's reservations to the shared store, once their charges have been replayed, and then
    /// the kept settlements. Both stay here until the store has replied.
    pub(super) async fn replay_reservations(&self) {
        if !self.breaker.is_closed() || !self.ledger.lock().is_empty() {
            return;
        }
        let now = self.clock.now();
        for granted in self.adoptable(now) {
            let token = granted.record.token();
            let age = now.as_micros().saturating_sub(granted.record.taken_at().as_micros());
            let age = Duration::from_micros(age);
            match self.store.adopt_reservation(&granted.record, age).await {
                Ok(()) => drop(self.reservations.0.lock().granted.remove(&token.place())),
                Err(_) => break,
            }
        }
        self.end_moves();
        self.replay_settlements().await;
    }

    /// Lets this node settle the reservations again that the shared store has not received.
    fn end_moves(&self) {
        let mut entries = self.reservations.0.lock();
        entries.granted.values_mut().for_each(|granted| granted.is_moving = false);
    }

    /// Sends each kept settlement once. One that the shared store does not know is kept for some time.
    async fn replay_settlements(&self) {
        let kept: Vec<KeptSettlement> =
            self.reservations.0.lock().settlements.values().cloned().collect();
        for KeptSettlement { token, tenant, finals, .. } in kept {
            let is_done = match self.store.settle(&token, tenant.as_deref(), &finals).await {
                Err(error) if error.is_transient() => return,
                Ok(None) => self.is_given_up(&token),
                _ => true,
            };
            if is_done {
                self.reservations.0.lock().settlements.remove(&token.place());
            }
        }
    }

    /// Counts a reply that the reservation of a kept settlement is unknown. Returns whether there were too many.
    fn is_given_up(&self, token: &ReservationToken) -> bool {
        let mut entries = self.reservations.0.lock();
        entries.settlements.get_mut(&token.place()).is_none_or(|kept| {
            kept.unknown_replies += 1;
            kept.unknown_replies >= MAX_UNKNOWN_REPLIES
        })
    }

    /// Returns the reservations that the shared store can settle.
    fn adoptable(&self, now: Timestamp) -> Vec<NodeReservation> {
        let mut entries = self.reservations.0.lock();
        entries.granted.retain(|_, granted| granted.until > now);
        let max = self.max_distribution;
        let shared = entries.granted.values_mut().filter(|granted| granted.is_shared(max));
        let moved = shared.map(|granted| {
            granted.is_moving = true;
            granted.clone()
        });
        moved.collect()
    }

    fn granted(&self, token: &ReservationToken) -> Option<NodeReservation> {
        let entries = self.reservations.0.lock();
        let granted = entries.granted.get(&token.place())?;
        (granted.until > self.clock.now()).then(|| granted.clone())
    }

    fn kept(&self, token: &ReservationToken) -> Option<KeptSettlement> {
        self.reservations.0.lock().settlements.get(&token.place()).cloned()
    }
}
