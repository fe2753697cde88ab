//! Prices: how much of each unit a usage costs.

use std::num::NonZero;

use crate::time::MAX_EXACT;

/// The unit that every usage has, also without a price.
const TOKENS: &str = "tokens";

/// The usages that are tokens.
const TOKEN_USAGES: [&str; 2] = ["input", "output"];

/// The prices of a policy: formulas that convert a usage, such as input and output tokens, to amounts of units.
///
/// Tokens need no price: unless the policy has one, `tokens` is `input` + `output`.
///
/// ```
/// use tollgate::Policy;
///
/// let text = "
/// version: 1
/// prices:
///   usd_micros: { input: 150, output: 600, per: 1000 }
/// ";
/// let policy = Policy::from_yaml("policy.yaml", text, Policy::builtin_limit())?;
/// let amounts: Vec<_> = policy.prices().amounts(&[("input", 1000), ("output", 1)]).collect();
/// assert_eq!(amounts, [("tokens", 1001), ("usd_micros", 151)]);
/// # Ok::<(), tollgate::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prices {
    units: Vec<UnitPrice>,
}

/// The price of a usage in one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnitPrice {
    pub(super) unit: Box<str>,
    /// The price of each kind of usage, by name.
    pub(super) prices: Vec<(Box<str>, u64)>,
    /// The amount of usage that the prices are for.
    pub(super) per: NonZero<u64>,
}

impl Prices {
    pub(super) const fn new(units: Vec<UnitPrice>) -> Self {
        Self { units }
    }

    /// Returns the amount of each unit for a usage: `tokens`, then the units of the policy in file order. Each amount is
    /// the sum of price × usage, divided by `per` and rounded up; at most 2^53 − 1. A usage without a price costs
    /// nothing.
    pub fn amounts<'p>(&'p self, usage: &[(&str, u64)]) -> impl Iterator<Item = (&'p str, u64)> {
        let has_price = self.units.iter().any(|price| &*price.unit == TOKENS);
        let tokens = (!has_price).then(|| (TOKENS, tokens(usage)));
        tokens.into_iter().chain(self.units.iter().map(|price| (&*price.unit, price.amount(usage))))
    }
}

impl UnitPrice {
    fn amount(&self, usage: &[(&str, u64)]) -> u64 {
        let costs = usage.iter().map(|(name, amount)| {
            let price = self.prices.iter().find(|(usage, _)| **usage == **name);
            u128::from(price.map_or(0, |(_, price)| *price)) * u128::from(*amount)
        });
        let sum = costs.fold(0, u128::saturating_add);
        to_amount(sum.div_ceil(u128::from(self.per.get())))
    }
}

/// Returns the number of tokens in a usage.
fn tokens(usage: &[(&str, u64)]) -> u64 {
    let of_tokens = usage.iter().filter(|(name, _)| TOKEN_USAGES.contains(name));
    to_amount(of_tokens.map(|(_, amount)| u128::from(*amount)).fold(0, u128::saturating_add))
}

/// Limits the amount to 2^53 − 1, the maximum cost of a request.
fn to_amount(sum: u128) -> u64 {
    u64::try_from(sum).map_or(MAX_EXACT - 1, |amount| amount.min(MAX_EXACT - 1))
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use proptest::prelude::*;

    use super::{Prices, UnitPrice};

    const MAX: u64 = (1 << 53) - 1;

    fn prices(unit: &str, prices: &[(&str, u64)], per: u64) -> Prices {
        let prices = prices.iter().map(|(name, price)| ((*name).into(), *price)).collect();
        Prices::new(vec![UnitPrice { unit: unit.into(), prices, per: NonZero::new(per).unwrap() }])
    }

    fn amounts<'p>(prices: &'p Prices, usage: &[(&str, u64)]) -> Vec<(&'p str, u64)> {
        prices.amounts(usage).collect()
    }

    #[test]
    fn amounts_are_rounded_up() {
        let prices = prices("usd", &[("input", 3), ("output", 15)], 1000);
        for (input, output, usd) in
            [(0, 0, 0), (1, 0, 1), (333, 0, 1), (334, 0, 2), (1000, 1000, 18), (1, 200, 4)]
        {
            let usage = [("input", input), ("output", output)];
            assert_eq!(amounts(&prices, &usage), [("tokens", input + output), ("usd", usd)]);
        }
    }

    #[test]
    fn usages_without_a_price_cost_nothing() {
        let prices = prices("usd", &[("images", 7)], 1);
        let usage = [("input", 5), ("audio", 9), ("images", 2), ("images", 1)];
        assert_eq!(amounts(&prices, &usage), [("tokens", 5), ("usd", 21)]);
        assert_eq!(amounts(&prices, &[]), [("tokens", 0), ("usd", 0)]);
    }

    #[test]
    fn a_price_of_tokens_replaces_their_number() {
        let prices = prices("tokens", &[("input", 1), ("output", 4)], 1);
        assert_eq!(amounts(&prices, &[("input", 5), ("output", 2)]), [("tokens", 13)]);
    }

    #[test]
    fn amounts_are_at_most_two_to_the_53_minus_1() {
        let largest = prices("usd", &[("input", MAX), ("output", MAX)], 1);
        let usage = [("input", u64::MAX), ("output", u64::MAX)];
        assert_eq!(amounts(&largest, &usage), [("tokens", MAX), ("usd", MAX)]);
        assert_eq!(amounts(&largest, &[usage; 100].concat()), [("tokens", MAX), ("usd", MAX)]);
        let one = prices("usd", &[("input", 1)], 1);
        assert_eq!(amounts(&one, &[("input", MAX)])[1], ("usd", MAX));
        assert_eq!(amounts(&one, &[("input", MAX + 1)])[1], ("usd", MAX));
        // The product needs more than 64 bits, the quotient does not.
        let large = prices("usd", &[("input", MAX)], MAX);
        assert_eq!(amounts(&large, &[("input", MAX)])[1], ("usd", MAX));
    }

    proptest! {
        /// The smallest amount that pays for the usage.
        #[test]
        fn amounts_pay_for_the_usage(price in 0..1_000_000_u64, per in 1..1_000_000_u64, usage in 0..1_000_000_u64) {
            let prices = prices("usd", &[("input", price)], per);
            let (_, amount) = amounts(&prices, &[("input", usage)])[1];
            prop_assert!(amount * per >= price * usage);
            prop_assert!(amount == 0 || (amount - 1) * per < price * usage);
        }
    }
}
