//! Records: what a store knows of a reservation.

use std::time::Duration;

use smallvec::SmallVec;

use super::settlement::TakeOutcome;
use super::{GivenBack, ReservationToken};
use crate::algorithm::PermitId;
use crate::costs::Costs;
use crate::decision::{Decision, HeldKey, Permit};
use crate::limit::Limit;
use crate::plan::{Key, Mode, Plan, Take};
use crate::time::Timestamp;

/// The time to live of a reservation that does not set one.
pub const DEFAULT_RESERVATION_TTL: Duration = Duration::from_secs(60);
/// The longest time to live of a reservation.
pub const MAX_RESERVATION_TTL: Duration = Duration::from_secs(86_400);

/// A reservation to make: everything but what the store adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The token. A store may add its hint.
    pub token: ReservationToken,
    /// The tenant of the request; empty for none.
    pub tenant: Box<[u8]>,
    /// How long the reservation holds its slots.
    pub ttl: Duration,
    /// The estimate.
    pub costs: Costs,
    /// For each take of the plan, what one request costs: the `cost` of its rule, 1 for other units.
    pub factors: SmallVec<[u64; 2]>,
}

/// What a reservation took from one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TakenAmount {
    /// The deficit of a token bucket after the take, in grains; 0 for the other algorithms.
    pub deficit: u64,
    /// What had been given back to the token bucket before the take.
    pub given_back: GivenBack,
}

/// One take of a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservedTake {
    /// The limit, with its rule.
    pub limit: Limit,
    /// The subject of the key, as escaped text.
    pub subject: Box<str>,
    /// The amount taken.
    pub cost: u64,
    /// What one of the unit costs.
    pub factor: u64,
    /// Whether the limit is enforced.
    pub is_enforced: bool,
    /// What was taken; `None` if nothing, as in a shadow rule that would refuse.
    pub taken: Option<TakenAmount>,
}

/// What a store knows of a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub(super) draft: Draft,
    pub(super) taken_at: Timestamp,
    pub(super) expires_at: Timestamp,
    pub(super) permit: Option<PermitId>,
    pub(super) takes: Vec<ReservedTake>,
    pub(super) settled: Option<(Costs, Vec<TakeOutcome>)>,
}

/// The result of a reservation.
#[derive(Debug)]
pub enum Reserved<'a> {
    /// The store decided. The record exists only if the decision allows.
    Decided(Decision<'a>, Option<Record>),
    /// The caller had used the id before; nothing was taken.
    Known(Record),
}

impl ReservedTake {
    /// Whether the take holds slots until the reservation is settled.
    #[must_use]
    pub fn holds_slots(&self) -> bool {
        self.taken.is_some() && self.cost > 0 && self.limit.algorithm().holds_slots()
    }

    /// Returns the key of the take.
    #[must_use]
    pub fn key(&self) -> Key<'_> {
        Key::private(&self.subject, &self.limit)
    }
}

impl Record {
    /// Creates the record of a plan that was allowed at `taken_at`. `taken` returns what each take took, if anything.
    #[must_use]
    pub fn new(
        draft: Draft,
        plan: &Plan<'_>,
        taken_at: Timestamp,
        taken: impl Fn(usize, &Take<'_>) -> Option<TakenAmount>,
    ) -> Self {
        let factors = draft.factors.iter().copied().chain(std::iter::repeat(1));
        let takes = plan.takes().iter().zip(factors).enumerate().map(|(index, (take, factor))| {
            ReservedTake {
                limit: take.key().limit().clone(),
                subject: take.key().subject().into(),
                cost: take.cost(),
                factor,
                is_enforced: take.mode() == Mode::Enforce,
                taken: taken(index, take),
            }
        });
        let takes = takes.collect();
        let (permit, expires_at) = (plan.permit(), taken_at);
        let mut record = Self { draft, taken_at, expires_at, permit, takes, settled: None };
        record.renew(taken_at);
        record
    }

    /// The token.
    #[must_use]
    pub const fn token(&self) -> ReservationToken {
        self.draft.token
    }

    /// The tenant; empty for none.
    #[must_use]
    pub fn tenant(&self) -> &[u8] {
        &self.draft.tenant
    }

    /// The estimate.
    #[must_use]
    pub const fn costs(&self) -> &Costs {
        &self.draft.costs
    }

    /// The store's time of the takes.
    #[must_use]
    pub const fn taken_at(&self) -> Timestamp {
        self.taken_at
    }

    /// The store's time at which the reservation expires: after its time to live, and with its first slot at the latest.
    #[must_use]
    pub const fn expires_at(&self) -> Timestamp {
        self.expires_at
    }

    /// The time to live: how long a renewal extends the reservation.
    #[must_use]
    pub const fn ttl(&self) -> Duration {
        self.draft.ttl
    }

    /// The takes, in the order of the plan.
    #[must_use]
    pub fn takes(&self) -> &[ReservedTake] {
        &self.takes
    }

    pub(crate) fn takes_mut(&mut self) -> &mut [ReservedTake] {
        &mut self.takes
    }

    /// The time for which a store keeps the record after a renewal.
    #[must_use]
    pub fn remaining_retention(&self) -> Duration {
        let windows = self.takes.iter().map(|take| take.limit.window());
        self.draft.ttl + windows.max().unwrap_or_default().min(MAX_RESERVATION_TTL)
    }

    /// The time for which a store keeps the record: the time to live and the longest window, at most one day.
    #[must_use]
    pub fn retention(ttl: Duration, takes: &[Take<'_>]) -> Duration {
        let windows = takes.iter().map(|take| take.key().limit().window());
        ttl + windows.max().unwrap_or_default().min(MAX_RESERVATION_TTL)
    }

    /// The permit of the slots, if the reservation holds any.
    #[must_use]
    pub fn permit(&self) -> Option<Permit> {
        let held = self.takes.iter().filter(|take| take.holds_slots());
        let held: Vec<HeldKey> = held
            .map(|take| HeldKey::new(take.limit.identity(), take.subject.as_ref().to_owned()))
            .collect();
        Permit::from_parts(self.permit?, held)
    }

    /// The final costs and the outcome of each take, once the reservation is settled.
    #[must_use]
    pub fn settled(&self) -> Option<(&Costs, &[TakeOutcome])> {
        self.settled.as_ref().map(|(costs, outcomes)| (costs, outcomes.as_slice()))
    }

    /// Returns whether a token with this secret, of a request of this tenant, may settle the reservation. `None`: the
    /// tenant of the request is not known.
    #[must_use]
    pub fn is_of(&self, token: &ReservationToken, tenant: Option<&[u8]>) -> bool {
        // Compared without a branch per byte: a caller may measure the time.
        let difference = self.draft.token.secret() ^ token.secret();
        difference == 0 && tenant.is_none_or(|tenant| *tenant == *self.draft.tenant)
    }

    /// Marks the reservation as settled.
    pub fn settle(&mut self, costs: Costs, outcomes: Vec<TakeOutcome>) {
        self.settled = Some((costs, outcomes));
    }

    /// Marks the reservation as open again: its settlement has changed nothing.
    pub(crate) fn reopen(&mut self) {
        self.settled = None;
    }

    /// Returns the same record on another clock, at which it is `now`, of takes that happened `age` ago.
    #[must_use]
    pub fn rebased(&self, now: Timestamp, age: Duration) -> Self {
        let taken_at = now - age;
        let lasts = self.expires_at.as_micros().saturating_sub(self.taken_at.as_micros());
        let expires_at = taken_at + Duration::from_micros(lasts);
        Self { taken_at, expires_at, ..self.clone() }
    }

    /// Extends the reservation to its time to live from `now`, or to that of its slots if it is shorter.
    pub fn renew(&mut self, now: Timestamp) {
        let slots = self.takes.iter().filter(|take| take.cost > 0);
        let shortest = slots.filter_map(|take| take.limit.ttl()).min();
        self.expires_at =
            self.expires_at.max(now + self.draft.ttl.min(shortest.unwrap_or(Duration::MAX)));
    }
}
