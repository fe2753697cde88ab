//! Settlements: the final amounts of a reservation, and what they changed.

use crate::algorithm::{Adjusted, Adjustment, Reply};
use crate::costs::Costs;
use crate::limit::Limit;
use crate::unit::Unit;

use super::GivenBack;
use super::record::{Record, ReservedTake};
use crate::time::Timestamp;

/// The final amounts of a reservation, in place of the estimate.
///
/// ```
/// use tollgate::Costs;
/// use tollgate::reservation::FinalCosts;
///
/// let used = FinalCosts::of(Costs::of([("tokens", 420)])?);
/// let estimate = Costs::requests(1).and("tokens", 1800)?;
/// assert_eq!(used.of_estimate(&estimate), Costs::requests(1).and("tokens", 420)?);
/// assert!(FinalCosts::cancelled().of_estimate(&estimate).is_zero());
/// # Ok::<(), tollgate::CostsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinalCosts(Option<Costs>);

impl FinalCosts {
    /// The units that the costs name have these amounts; all others keep their estimate.
    #[must_use]
    pub const fn of(costs: Costs) -> Self {
        Self(Some(costs))
    }

    /// Every unit costs 0.
    #[must_use]
    pub const fn cancelled() -> Self {
        Self(None)
    }

    /// Returns the amounts that are set; `None` if every unit costs 0.
    pub(crate) const fn named(&self) -> Option<&Costs> {
        self.0.as_ref()
    }

    /// Returns the final costs of a reservation with this estimate: `requests` and others in the order of [`Costs`].
    #[must_use]
    pub fn of_estimate(&self, estimate: &Costs) -> Costs {
        let amount = |unit: &Unit, reserved: u64| match &self.0 {
            None => 0,
            Some(costs) => costs.named(unit).unwrap_or(reserved),
        };
        let kept: Vec<_> = estimate
            .iter()
            .map(|(unit, reserved)| (unit.as_str(), amount(unit, reserved)))
            .collect();
        let is_new = |unit: &Unit| estimate.named(unit).is_none();
        let new = self.0.iter().flat_map(Costs::iter).filter(|(unit, _)| is_new(unit));
        let all = kept.iter().copied().chain(new.map(|(unit, amount)| (unit.as_str(), amount)));
        // All units are valid. If they are more than a request can have, those that were not reserved are left out.
        let all = Costs::of(all.collect::<Vec<_>>()).or_else(|_| Costs::of(kept));
        all.unwrap_or_else(|_| estimate.clone())
    }
}

/// What a settlement did to one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TakeOutcome {
    /// The amount that the limit got back.
    pub given_back: u64,
    /// The part of the excess that the limit did not take, because its debt would be too large.
    pub uncollected: u64,
}

/// What a settlement did in one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitOutcome {
    /// The unit.
    pub unit: Unit,
    /// The final amount, less what could not be collected.
    pub charged: u64,
    /// The part of the estimate that was returned: the largest amount that a limit got back.
    pub refunded: u64,
    /// The largest amount that a limit could not take.
    pub uncollected: u64,
}

/// A limit after a settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitState {
    /// The limit, with its rule.
    pub limit: Limit,
    /// The subject of the key, as escaped text.
    pub subject: Box<str>,
    /// The figures of the key.
    pub reply: Reply,
    /// Whether the limit is enforced.
    pub is_enforced: bool,
}

/// The result of a settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settled {
    /// Whether the reservation had been settled before. Then the amounts are those of the first settlement.
    pub is_repeated: bool,
    /// Whether the store was lost: the settlement is recorded in this node and replayed when the store is back.
    pub is_degraded: bool,
    /// The amounts by unit: every unit of the estimate and of the final costs.
    pub units: Vec<UnitOutcome>,
    /// The limits of the reservation, after the settlement.
    pub limits: Vec<LimitState>,
}

impl Settled {
    /// Creates the result of the first settlement.
    #[must_use]
    pub const fn new(units: Vec<UnitOutcome>, limits: Vec<LimitState>) -> Self {
        Self { is_repeated: false, is_degraded: false, units, limits }
    }

    /// Marks the result as that of an earlier settlement.
    #[must_use]
    pub fn repeated(self) -> Self {
        Self { is_repeated: true, ..self }
    }
}

impl ReservedTake {
    /// Returns the state of the limit with these figures.
    #[must_use]
    pub fn state(&self, reply: Reply) -> LimitState {
        LimitState {
            limit: self.limit.clone(),
            subject: self.subject.clone(),
            reply,
            is_enforced: self.is_enforced,
        }
    }

    /// Returns the adjustment that changes the take to its final amount, if it took anything. `given_back`: the current
    /// sum of what others gave back to the key, which token buckets need.
    #[must_use]
    pub fn adjustment(
        &self,
        (taken_at, now): (Timestamp, Timestamp),
        costs: &Costs,
        given_back: GivenBack,
    ) -> Option<Adjustment> {
        let taken = self.taken?;
        let amount = costs.get(self.limit.unit()).saturating_mul(self.factor);
        if self.limit.algorithm().holds_slots() || amount == self.cost {
            return None;
        }
        if amount > self.cost {
            return Some(Adjustment::Overdraw { amount: amount - self.cost });
        }
        let others = given_back.after(taken.given_back, taken_at);
        let deficit = others.map_or(0, |others| taken.deficit.saturating_sub(others));
        let age =
            std::time::Duration::from_micros(now.as_micros().saturating_sub(taken_at.as_micros()));
        Some(Adjustment::GiveBack { amount: self.cost - amount, age, deficit })
    }
}

impl TakeOutcome {
    /// Returns what an adjustment did.
    #[must_use]
    pub const fn of(adjustment: Adjustment, adjusted: &Adjusted) -> Self {
        match adjustment {
            Adjustment::GiveBack { .. } => Self { given_back: adjusted.amount, uncollected: 0 },
            Adjustment::Overdraw { amount } => {
                Self { given_back: 0, uncollected: amount.saturating_sub(adjusted.amount) }
            }
        }
    }
}

impl Record {
    /// Returns the outcome by unit, from that of each take.
    #[must_use]
    pub fn unit_outcomes(&self, costs: &Costs, outcomes: &[TakeOutcome]) -> Vec<UnitOutcome> {
        let of_unit = |(unit, amount): (&Unit, u64)| {
            let takes = self.takes().iter().zip(outcomes);
            let takes = takes.filter(|(take, _)| {
                take.limit.unit() == unit && !take.limit.algorithm().holds_slots()
            });
            let (mut refunded, mut uncollected, mut is_counted) = (0, 0, false);
            for (take, outcome) in takes.filter(|(take, _)| take.taken.is_some()) {
                is_counted = true;
                refunded = outcome.given_back.div_ceil(take.factor.max(1)).max(refunded);
                uncollected = outcome.uncollected.div_ceil(take.factor.max(1)).max(uncollected);
            }
            if !is_counted {
                // No limit counts the unit, so nothing prevents that all of it is returned.
                refunded = self.costs().get(unit).saturating_sub(amount);
            }
            let charged = amount.saturating_sub(uncollected);
            UnitOutcome { unit: unit.clone(), charged, refunded, uncollected }
        };
        costs.iter().map(of_unit).collect()
    }
}
