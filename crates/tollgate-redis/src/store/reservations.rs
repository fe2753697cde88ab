//! Reservations in Redis: one call to reserve, one to read the record of a token, and one to settle it.
//!
//! The record is in the slot of the first key of its plan. A token reveals no key: it has the number of a hash tag of that
//! slot.

use std::time::Duration;

use smallvec::SmallVec;
use tollgate::algorithm::{Adjustment, Parameters};
use tollgate::reservation::{
    Draft, FinalCosts, GivenBack, Record, ReservationToken, Reserved, ReservedTake, Settled,
    TakenAmount,
};
use tollgate::{Costs, Decision, PermitId, Plan, Status, StoreError, StoreErrorKind, Timestamp};

use super::{RedisStore, Takes};
use crate::call::{self, EncodedTake, Figures, PlanReply, ReservationVerb, Verb};
use crate::failure::Failure;
use crate::limit_code::{micros, millis, write_number};
use crate::slot::{Slot, tag_in};

/// How a settlement changes a take, as `reservations.lua` reads it.
const KEEP: u8 = 0;
const GIVE_BACK: u8 = 1;
const OVERDRAW: u8 = 2;

impl RedisStore {
    pub(super) async fn reserve_in_store<'a>(
        &self,
        plan: &Plan<'a>,
        draft: &Draft,
    ) -> Result<Reserved<'a>, StoreError> {
        let token = draft.token.with_hint(self.hint_of(plan));
        let draft = Draft { token, ..draft.clone() };
        let mut arguments = Vec::new();
        write_permit(&mut arguments, plan.permit());
        write_number(&mut arguments, micros(draft.ttl));
        write_number(&mut arguments, millis(Record::retention(draft.ttl, plan.takes())));
        arguments.extend(draft.encode_terms(plan).ok_or_else(unexpected)?);
        let takes = || {
            let now = self.shared.time.estimate();
            let counters = call::takes_of(plan, &self.shared.keys, now);
            let buckets = plan.takes().iter().map(|take| {
                let is_bucket = is_bucket(take.key().limit().parameters());
                is_bucket.then(|| (take.key().subject(), take.key().limit().identity()))
            });
            self.with_entries(&token, arguments.clone(), buckets, counters)
        };
        match self.on_reservation(ReservationVerb::Reserve, takes).await? {
            PlanReply::Record(bytes) => Ok(Reserved::Known(decode(token, &bytes)?)),
            PlanReply::Figures(figures) => Ok(reserved(plan, draft, &figures)),
            PlanReply::Number(at) => {
                // A plan without takes has no figures.
                let at = u64::try_from(at).map_err(|_| unexpected())?;
                let figures = Figures::none(Timestamp::from_micros(at));
                Ok(reserved(plan, draft, &figures))
            }
            _ => Err(unexpected()),
        }
    }

    pub(super) async fn settle_in_store(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
        finals: &FinalCosts,
    ) -> Result<Option<Settled>, StoreError> {
        let Some(record) = self.read_record(token, tenant).await? else { return Ok(None) };
        if record.settled().is_some() {
            return self.repeated(&record).await.map(Some);
        }
        let costs = finals.of_estimate(record.costs());
        let takes = || self.settlement(token, &record, &costs);
        let reply = self.on_reservation(ReservationVerb::Settle, takes).await;
        self.forget(record.takes().iter().map(|take| &*take.subject));
        match reply? {
            PlanReply::NoRecord => Ok(None),
            // Another settlement was faster.
            PlanReply::Record(bytes) => self.repeated(&decode(*token, &bytes)?).await.map(Some),
            PlanReply::Figures(figures) => {
                let states = record.takes().iter().zip(&figures.replies);
                let states = states.map(|(take, reply)| take.state(*reply)).collect();
                let units = record.unit_outcomes(&costs, &figures.outcomes);
                Ok(Some(Settled::new(units, states)))
            }
            PlanReply::Number(_) => {
                Ok(Some(Settled::new(record.unit_outcomes(&costs, &[]), Vec::new())))
            }
            _ => Err(unexpected()),
        }
    }

    pub(super) async fn extend_in_store(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
    ) -> Result<Option<Timestamp>, StoreError> {
        let Some(record) = self.read_record(token, tenant).await? else { return Ok(None) };
        if record.settled().is_some() {
            return Ok(None);
        }
        let permit = record.permit();
        let mut arguments = Vec::new();
        write_permit(&mut arguments, permit.as_ref().map(tollgate::Permit::id));
        write_number(&mut arguments, micros(record.ttl()));
        write_number(&mut arguments, millis(record.remaining_retention()));
        let takes = || {
            let now = self.shared.time.estimate();
            let slots = record.takes().iter().filter(|take| take.holds_slots());
            let slots =
                slots.map(|take| call::take_of(&take.key(), take.cost, &self.shared.keys, now));
            self.with_entries(token, arguments.clone(), std::iter::empty(), slots.collect())
        };
        match self.on_reservation(ReservationVerb::Extend, takes).await? {
            PlanReply::Number(expiry) => Ok(u64::try_from(expiry).ok().map(Timestamp::from_micros)),
            _ => Err(unexpected()),
        }
    }

    pub(super) async fn adopt_in_store(
        &self,
        record: &Record,
        age: Duration,
    ) -> Result<(), StoreError> {
        let record = record.rebased(self.shared.time.estimate(), age);
        let mut arguments = Vec::new();
        write_number(&mut arguments, millis(record.remaining_retention()));
        arguments.extend(record.encode().ok_or_else(unexpected)?);
        let takes = || {
            self.with_entries(
                &record.token(),
                arguments.clone(),
                std::iter::empty(),
                SmallVec::new(),
            )
        };
        self.on_reservation(ReservationVerb::Adopt, takes).await.map(|_| ())
    }

    /// Returns the record of a token, unless it is of another tenant.
    async fn read_record(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
    ) -> Result<Option<Record>, StoreError> {
        let takes = || self.with_entries(token, Vec::new(), std::iter::empty(), SmallVec::new());
        match self.on_reservation(ReservationVerb::Read, takes).await? {
            PlanReply::NoRecord => Ok(None),
            PlanReply::Record(bytes) => {
                let record = decode(*token, &bytes)?;
                Ok(record.is_of(token, tenant).then_some(record))
            }
            _ => Err(unexpected()),
        }
    }

    /// Returns the result of the first settlement, with the current figures.
    async fn repeated(&self, record: &Record) -> Result<Settled, StoreError> {
        let Some((costs, outcomes)) = record.settled() else { return Err(unexpected()) };
        let units = record.unit_outcomes(costs, outcomes);
        let takes = || {
            let now = self.shared.time.estimate();
            let takes = record.takes().iter();
            takes.map(|take| call::take_of(&take.key(), 0, &self.shared.keys, now)).collect()
        };
        let replies = match record.takes().is_empty() {
            true => SmallVec::new(),
            false => self.shared.figures_across_nodes(Verb::Peek, takes).await?.replies,
        };
        let states = record.takes().iter().zip(replies);
        let states = states.map(|(take, reply)| take.state(reply)).collect();
        Ok(Settled::new(units, states).repeated())
    }

    /// Encodes the settlement of a record.
    fn settlement(&self, token: &ReservationToken, record: &Record, costs: &Costs) -> Takes {
        let now = self.shared.time.estimate();
        let mut arguments = Vec::new();
        write_permit(&mut arguments, record.permit().map(|permit| permit.id()));
        write_number(&mut arguments, record.taken_at().as_micros());
        for take in record.takes() {
            write_change(&mut arguments, take, record.taken_at(), costs);
        }
        arguments.extend(costs.encode_final().unwrap_or_default());
        let takes = record.takes().iter();
        let counters =
            takes.map(|take| call::take_of(&take.key(), take.cost, &self.shared.keys, now));
        let buckets = record.takes().iter().map(|take| {
            let is_bucket = is_bucket(take.limit.parameters());
            is_bucket.then(|| (&*take.subject, take.limit.identity()))
        });
        self.with_entries(token, arguments, buckets, counters.collect())
    }

    /// Puts the record, and the sums of token buckets, in front of the counters.
    fn with_entries<'n>(
        &self,
        token: &ReservationToken,
        arguments: Vec<u8>,
        buckets: impl Iterator<Item = Option<(&'n str, String)>>,
        counters: Takes,
    ) -> Takes {
        let keys = &self.shared.keys;
        let record = EncodedTake::of_record(keys.reservation(token), arguments);
        let sums = buckets.flatten().map(|(subject, identity)| {
            EncodedTake::of_given_back(keys.given_back(subject, &identity))
        });
        std::iter::once(record).chain(sums).chain(counters).collect()
    }

    /// Runs a verb on a reservation. Retries once if the calendar windows in the call were stale.
    async fn on_reservation(
        &self,
        verb: ReservationVerb,
        takes: impl Fn() -> Takes,
    ) -> Result<PlanReply, StoreError> {
        for _ in 0..2 {
            let reply = self.shared.decide_on_node(Verb::OnReservation(verb), takes()).await?;
            match reply {
                Some(PlanReply::Stale) => {}
                None | Some(PlanReply::OnSeveralNodes) => return Err(on_several_nodes()),
                Some(reply) => return Ok(reply),
            }
        }
        let reason = "the clock of Redis changes too fast for calendar windows";
        Err(Failure::Unreachable(reason.to_owned()).into_store_error())
    }

    /// Returns a number whose hash tag is in the slot of the first key of a plan.
    pub(super) fn hint_of(&self, plan: &Plan<'_>) -> u32 {
        if !self.shared.router.is_cluster() {
            return 0;
        }
        let first = plan.takes().first().map(|take| {
            let key = take.key();
            self.shared.keys.counter(key.subject(), &key.limit().identity())
        });
        first.map_or(0, |key| tag_in(Slot::of(&key)))
    }
}

/// Returns the reservation that Redis decided.
fn reserved<'a>(plan: &Plan<'a>, draft: Draft, figures: &Figures) -> Reserved<'a> {
    let pairs = plan.takes().iter().zip(&figures.replies);
    let statuses = pairs.map(|(take, reply)| Status::new(take.key().limit(), take.mode(), *reply));
    let decision = Decision::new(figures.at, statuses);
    let record = decision.is_allowed().then(|| {
        let taken = |_: usize, take: &tollgate::Take<'_>| {
            decision.has_taken(take.mode()).then(TakenAmount::default)
        };
        Record::new(draft, plan, figures.at, taken)
    });
    Reserved::Decided(decision, record)
}

fn write_change(out: &mut Vec<u8>, take: &ReservedTake, taken_at: Timestamp, costs: &Costs) {
    // Redis knows the current sum and the time: only the amount matters here.
    let adjustment = take.adjustment((taken_at, taken_at), costs, GivenBack::default());
    let (kind, amount) = match adjustment {
        Some(Adjustment::GiveBack { amount, .. }) => (GIVE_BACK, amount),
        Some(Adjustment::Overdraw { amount }) => (OVERDRAW, amount),
        _ => (KEEP, 0),
    };
    let TakenAmount { deficit, given_back } = take.taken.unwrap_or_default();
    let (since, total) = given_back.parts();
    out.push(kind);
    [amount, deficit, since, total].into_iter().for_each(|number| write_number(out, number));
}

fn write_permit(out: &mut Vec<u8>, permit: Option<PermitId>) {
    out.extend_from_slice(&permit.map_or(0, PermitId::as_u128).to_be_bytes());
}

const fn is_bucket(parameters: &Parameters) -> bool {
    matches!(parameters, Parameters::TokenBucket(_))
}

fn decode(token: ReservationToken, bytes: &[u8]) -> Result<Record, StoreError> {
    let unreadable = || {
        let message = "the record of the reservation has an unknown format";
        StoreError::new(StoreErrorKind::Incompatible, message)
    };
    Record::decode(token, bytes).ok_or_else(unreadable)
}

fn unexpected() -> StoreError {
    Failure::unexpected().into_store_error()
}

fn on_several_nodes() -> StoreError {
    let message = "a reservation cannot have keys on several cluster nodes; count all its limits by the same facts";
    StoreError::new(StoreErrorKind::Unsupported, message)
}
