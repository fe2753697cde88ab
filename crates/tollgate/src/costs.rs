//! The costs of a request: an amount for each unit.

mod error;

use std::sync::Arc;

pub use error::{CostsError, CostsErrorKind};

#[cfg(feature = "policy")]
use crate::limit::Limit;
use crate::time::MAX_EXACT;
use crate::unit::Unit;

/// The maximum number of units in the costs of one request.
pub const MAX_UNITS: usize = 16;

/// The costs of a request: an amount for each unit. A unit that they do not name costs 0.
///
/// Each limit takes the amount of its [unit](crate::Limit::unit). A concurrency limit takes as many slots as the request
/// costs requests, and at least one slot if the request costs anything.
///
/// An amount above 2^53 becomes 2^53, which no limit can hold, so the verdict is the same.
///
/// ```
/// use tollgate::{Costs, Unit};
///
/// let costs = Costs::requests(1).and("tokens", 1800)?;
/// assert_eq!(costs.get(&Unit::requests()), 1);
/// assert_eq!(costs.get(&Unit::new("tokens")?), 1800);
/// assert_eq!(costs.get(&Unit::new("bytes")?), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Costs {
    requests: u64,
    /// Whether the costs name `requests`. If not, `requests` is 0.
    names_requests: bool,
    others: Option<OtherCosts>,
}

impl Costs {
    /// Creates the costs of `amount` requests and of no other unit.
    ///
    /// ```
    /// use tollgate::Costs;
    ///
    /// assert!(Costs::requests(0).is_zero());
    /// ```
    #[must_use]
    pub fn requests(amount: u64) -> Self {
        Self { requests: amount.min(MAX_EXACT), names_requests: true, others: None }
    }

    /// Creates costs from pairs of a unit and an amount, in any order. Without the unit `requests`, the request costs 0
    /// requests.
    ///
    /// ```
    /// use tollgate::{Costs, CostsErrorKind, Unit};
    ///
    /// let costs = Costs::of([("tokens", 1800), ("requests", 1)])?;
    /// assert_eq!(costs, Costs::requests(1).and("tokens", 1800)?);
    /// assert_eq!(Costs::of([("tokens", 1800)])?.get(&Unit::requests()), 0);
    ///
    /// let error = Costs::of([("tokens", 1), ("tokens", 2)]).unwrap_err();
    /// assert_eq!(error.kind(), CostsErrorKind::Duplicate);
    /// # Ok::<(), tollgate::CostsError>(())
    /// ```
    ///
    /// # Errors
    /// An invalid name of a unit, a unit that occurs twice, or more than [`MAX_UNITS`] units.
    pub fn of<N: AsRef<str>>(
        amounts: impl IntoIterator<Item = (N, u64)>,
    ) -> Result<Self, CostsError> {
        let mut costs = Self { requests: 0, names_requests: false, others: None };
        let mut others: Vec<(Unit, u64)> = Vec::new();
        for (name, amount) in amounts {
            let unit = Unit::new(name.as_ref()).map_err(|error| CostsError::unit(&error))?;
            let is_named = match unit.is_requests() {
                true => costs.names_requests,
                false => others.iter().any(|(other, _)| *other == unit),
            };
            if is_named {
                return Err(CostsError::duplicate(&unit));
            }
            if others.len() + usize::from(costs.names_requests) == MAX_UNITS {
                return Err(CostsError::too_many());
            }
            if unit.is_requests() {
                costs = Self { names_requests: true, requests: amount.min(MAX_EXACT), ..costs };
            } else {
                others.push((unit, amount.min(MAX_EXACT)));
            }
        }
        // Sorted, so that equal costs compare equal.
        others.sort_unstable_by(|(unit, _), (other, _)| unit.as_str().cmp(other.as_str()));
        costs.others = (!others.is_empty()).then(|| OtherCosts(others.into()));
        Ok(costs)
    }

    /// Adds the amount of another unit.
    ///
    /// # Errors
    /// An invalid name of a unit, a unit that the costs already name, or more than [`MAX_UNITS`] units.
    pub fn and(self, unit: &str, amount: u64) -> Result<Self, CostsError> {
        let named = self.iter().map(|(unit, amount)| (unit.as_str(), amount));
        Self::of(named.chain([(unit, amount)]))
    }

    /// Returns the amount of a unit; 0 if the costs do not name it.
    #[must_use]
    pub fn get(&self, unit: &Unit) -> u64 {
        match &self.others {
            _ if unit.is_requests() => self.requests,
            Some(others) => others.get(unit),
            None => 0,
        }
    }

    /// Returns the amount of a unit, or `None` if the costs do not name it.
    #[must_use]
    pub fn named(&self, unit: &Unit) -> Option<u64> {
        self.iter().find(|(named, _)| *named == unit).map(|(_, amount)| amount)
    }

    /// Returns whether every amount is 0, so that the request only peeks.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.requests == 0 && self.others.as_ref().is_none_or(OtherCosts::are_zero)
    }

    /// Returns the units that the costs name, with their amounts: `requests` first, others by name.
    ///
    /// ```
    /// use tollgate::Costs;
    ///
    /// let costs = Costs::requests(1).and("tokens", 0)?;
    /// let units: Vec<&str> = costs.iter().map(|(unit, _)| unit.as_str()).collect();
    /// assert_eq!(units, ["requests", "tokens"]);
    /// # Ok::<(), tollgate::CostsError>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&Unit, u64)> {
        let requests = self.names_requests.then(|| (Unit::requests_ref(), self.requests));
        let others = self.others.iter().flat_map(|others| others.0.iter());
        requests.into_iter().chain(others.map(|(unit, amount)| (unit, *amount)))
    }

    /// Returns the number of requests.
    #[inline]
    pub(crate) const fn requests_amount(&self) -> u64 {
        self.requests
    }

    /// Returns the amounts of the other units.
    #[cfg(feature = "policy")]
    #[inline]
    pub(crate) const fn others(&self) -> Option<&OtherCosts> {
        self.others.as_ref()
    }
}

/// One request.
impl Default for Costs {
    fn default() -> Self {
        Self::requests(1)
    }
}

/// Amounts of units other than `requests`, by name. Shared, because every rule that matches a request has a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherCosts(Arc<[(Unit, u64)]>);

impl OtherCosts {
    /// Creates the amount of one unit.
    #[cfg(feature = "policy")]
    pub(crate) fn one(unit: Unit, amount: u64) -> Self {
        Self(Arc::new([(unit, amount)]))
    }

    fn get(&self, unit: &Unit) -> u64 {
        self.0.iter().find(|(other, _)| other == unit).map_or(0, |(_, amount)| *amount)
    }

    fn are_zero(&self) -> bool {
        self.0.iter().all(|(_, amount)| *amount == 0)
    }
}

/// Returns the amount that a limit takes from a request with these costs. Almost all requests and limits count only
/// requests.
#[cfg(feature = "policy")]
#[inline(always)]
pub(crate) fn amount_of(limit: &Limit, requests: u64, others: Option<&OtherCosts>) -> u64 {
    if others.is_none() && limit.unit().is_requests() {
        return requests;
    }
    amount_of_unit(limit, requests, others)
}

#[cfg(feature = "policy")]
#[cold]
#[inline(never)]
fn amount_of_unit(limit: &Limit, requests: u64, others: Option<&OtherCosts>) -> u64 {
    match others {
        Some(others) if !limit.unit().is_requests() => others.get(limit.unit()),
        None if !limit.unit().is_requests() => 0,
        Some(others) if limit.algorithm().holds_slots() && !others.are_zero() => requests.max(1),
        _ => requests,
    }
}

#[cfg(test)]
#[cfg(feature = "policy")]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Quota;

    fn minute(unit: &str) -> Limit {
        let limit = Limit::fixed_window(Quota::per_minute(9)).unwrap();
        limit.in_unit(Unit::new(unit).unwrap()).unwrap()
    }

    fn slots() -> Limit {
        Limit::concurrency(9, Duration::from_secs(1)).unwrap()
    }

    fn amount(limit: &Limit, costs: &Costs) -> u64 {
        amount_of(limit, costs.requests_amount(), costs.others())
    }

    #[test]
    fn each_limit_takes_the_amount_of_its_unit() {
        let costs = Costs::of([("tokens", 1800), ("bytes", 7)]).unwrap();
        let amounts =
            ["requests", "tokens", "bytes", "usd"].map(|unit| amount(&minute(unit), &costs));
        assert_eq!(amounts, [0, 1800, 7, 0]);
        let plain = Costs::requests(3);
        assert_eq!(["requests", "tokens"].map(|unit| amount(&minute(unit), &plain)), [3, 0]);
    }

    #[test]
    fn a_concurrency_limit_takes_a_slot_if_anything_costs() {
        let slots = slots();
        let costs = |amounts: &[(&str, u64)]| Costs::of(amounts.iter().copied()).unwrap();
        assert_eq!(amount(&slots, &costs(&[("tokens", 1800)])), 1);
        assert_eq!(amount(&slots, &costs(&[("tokens", 1800), ("requests", 0)])), 1);
        assert_eq!(amount(&slots, &costs(&[("tokens", 1800), ("requests", 2)])), 2);
        assert_eq!(amount(&slots, &costs(&[("tokens", 0)])), 0);
        assert_eq!(amount(&slots, &Costs::requests(2)), 2);
    }

    #[test]
    fn costs_name_at_most_16_units() {
        let units = |count: u64| (0..count).map(|number| (format!("u{number}"), number));
        assert_eq!(Costs::of(units(16)).unwrap().iter().count(), 16);
        for many in [Costs::of(units(17)), Costs::of(units(16)).unwrap().and("requests", 1)] {
            let error = many.unwrap_err();
            assert_eq!(error.kind(), CostsErrorKind::TooMany);
            assert_eq!(error.to_string(), "a request can have costs in at most 16 units");
        }
    }

    #[test]
    fn each_unit_is_named_once_and_validly() {
        let error = Costs::requests(1).and("requests", 1).unwrap_err();
        assert_eq!(error.kind(), CostsErrorKind::Duplicate);
        assert_eq!(error.to_string(), "the costs name the unit \"requests\" twice");
        let error = Costs::requests(1).and("a b", 1).unwrap_err();
        assert_eq!(error.kind(), CostsErrorKind::Unit);
        assert_eq!(
            error.to_string(),
            "invalid unit \"a b\"; use 1 to 64 characters of A-Z a-z 0-9 . _ -"
        );
    }

    #[test]
    fn costs_without_requests_differ_from_0_requests_only_in_the_units_that_they_name() {
        let (without, zero) =
            (Costs::of([("a", 5)]).unwrap(), Costs::of([("a", 5), ("requests", 0)]));
        assert_ne!(without, zero.clone().unwrap());
        assert_eq!(without.iter().count(), 1);
        assert_eq!(zero.unwrap().iter().count(), 2);
        assert!(Costs::of([("a", 0)]).unwrap().is_zero());
        assert!(!without.is_zero());
    }

    #[test]
    fn amounts_above_the_maximum_are_the_maximum() {
        let costs = Costs::requests(u64::MAX).and("tokens", u64::MAX).unwrap();
        assert!(costs.iter().all(|(_, amount)| amount == MAX_EXACT));
    }
}
