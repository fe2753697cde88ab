//! The JSON of a settlement.

use serde::{Serialize, Serializer};
use tollgate::policy::RuleMode;
use tollgate::reservation::{LimitState, Settled, UnitOutcome};
use tollgate::rounding;

use super::decision::LimitNumbers;
#[cfg(test)]
use crate::reference_tests::names;

/// Response of `/settle`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Settlement"))]
pub(crate) struct SettleResponse<'a> {
    /// Always true: a reservation that cannot be settled is a problem.
    settled: bool,
    /// Whether the reservation was settled before. Then nothing changed, and the amounts are those of the first settlement.
    repeated: bool,
    /// Whether the store is unavailable: this node has recorded the settlement and applies it when the store is back.
    degraded: bool,
    /// The final amount of each unit, less what is uncollected.
    #[cfg_attr(test, schemars(with = "names::Costs"))]
    charged: Amounts<'a>,
    /// The part of the estimate of each unit that was returned. Amounts whose window has passed are not returned.
    #[cfg_attr(test, schemars(with = "names::Costs"))]
    refunded: Amounts<'a>,
    /// The part of each unit that no limit could take, because its debt would exceed one further full limit.
    #[cfg_attr(test, schemars(with = "names::Costs"))]
    uncollected: Amounts<'a>,
    /// Every limit of the reservation, after the settlement.
    #[cfg_attr(test, schemars(with = "Vec<SettledLimit<'a>>"))]
    limits: Vec<SettledLimit<'a>>,
}

impl<'a> SettleResponse<'a> {
    pub(crate) fn new(settled: &'a Settled) -> Self {
        let amounts = |amount| Amounts { units: &settled.units, amount };
        Self {
            settled: true,
            repeated: settled.is_repeated,
            degraded: settled.is_degraded,
            charged: amounts(|unit| unit.charged),
            refunded: amounts(|unit| unit.refunded),
            uncollected: amounts(|unit| unit.uncollected),
            limits: settled.limits.iter().map(SettledLimit::new).collect(),
        }
    }
}

/// An amount of each unit.
#[derive(Debug)]
struct Amounts<'a> {
    units: &'a [UnitOutcome],
    amount: fn(&UnitOutcome) -> u64,
}

impl Serialize for Amounts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer
            .collect_map(self.units.iter().map(|unit| (unit.unit.as_str(), (self.amount)(unit))))
    }
}

/// A limit after a settlement. It has no verdict, because a settlement is not refused.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SettledLimit<'a> {
    rule: &'a str,
    name: &'a str,
    /// What the limit counts; requests by default.
    #[cfg_attr(test, schemars(with = "names::LimitName"))]
    unit: &'a str,
    #[cfg_attr(test, schemars(with = "names::Algorithm"))]
    algorithm: &'static str,
    #[serde(flatten)]
    numbers: LimitNumbers,
    count: u64,
    remaining: u64,
    /// The amount used beyond the limit, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    debt: Option<u64>,
    reset_after_ms: u64,
    #[cfg_attr(test, schemars(with = "names::Mode"))]
    mode: &'static str,
}

impl<'a> SettledLimit<'a> {
    fn new(state: &'a LimitState) -> Self {
        let (limit, reply) = (&state.limit, &state.reply);
        let mode = if state.is_enforced { RuleMode::Enforce } else { RuleMode::Shadow };
        Self {
            rule: limit.rule(),
            name: limit.name(),
            unit: limit.unit().as_str(),
            algorithm: limit.algorithm().as_str(),
            numbers: LimitNumbers::of(limit),
            count: limit.capacity().saturating_sub(reply.remaining()),
            remaining: reply.remaining(),
            debt: Some(reply.debt()).filter(|debt| *debt > 0),
            reset_after_ms: rounding::millis(reply.reset_after()),
            mode: mode.as_str(),
        }
    }
}
