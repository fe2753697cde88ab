//! The estimate that a request reserves.

use std::time::Duration;

use tollgate::policy::Prices;
use tollgate::reservation::{DEFAULT_RESERVATION_TTL, MAX_RESERVATION_TTL};
use tollgate::{Costs, ReservationTerms};

use crate::usage::TokenUsage;

/// What a request reserves at admission, for
/// [`RateLimitLayerBuilder::reserve`](crate::RateLimitLayerBuilder::reserve).
///
/// ```
/// use std::time::Duration;
/// use tollgate::Costs;
/// use tollgate_tower::Estimate;
/// use tollgate_tower::usage::TokenUsage;
///
/// let by_unit = Estimate::of(Costs::requests(1).and("bytes", 4096)?);
/// // One request, and the tokens and the money of the prices in the policy.
/// let by_tokens = Estimate::of_usage(TokenUsage { input: 300, output: 1000 });
/// let long_job = by_tokens.ttl(Duration::from_secs(600));
/// # drop((by_unit, long_job));
/// # Ok::<(), tollgate::CostsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    amounts: Amounts,
    input_tokens: Option<u64>,
    ttl: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Amounts {
    Costs(Costs),
    Usage(TokenUsage),
}

impl Estimate {
    /// Creates an estimate of these costs.
    #[must_use]
    pub const fn of(costs: Costs) -> Self {
        let amounts = Amounts::Costs(costs);
        Self { amounts, input_tokens: None, ttl: DEFAULT_RESERVATION_TTL }
    }

    /// Creates an estimate of one request and of the amounts that these tokens cost by the
    /// [prices](tollgate::Policy::prices) of the policy: `tokens` and the priced units.
    #[must_use]
    pub const fn of_usage(usage: TokenUsage) -> Self {
        let amounts = Amounts::Usage(usage);
        Self { amounts, input_tokens: Some(usage.input), ttl: DEFAULT_RESERVATION_TTL }
    }

    /// Sets the number of input tokens for a response that ends before it reports them. The default is that of
    /// [`of_usage`](Self::of_usage); otherwise one token per 4 bytes of the request's `content-length`.
    #[must_use]
    pub const fn input_tokens(mut self, tokens: u64) -> Self {
        self.input_tokens = Some(tokens);
        self
    }

    /// Sets how long the reservation and its concurrency slots last if this process ends before it settles them. The
    /// default is 60 seconds; less than a millisecond counts as a millisecond, more than a day as a day. While the response
    /// is not complete, the layer renews them.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl.clamp(Duration::from_millis(1), MAX_RESERVATION_TTL);
        self
    }

    /// Returns the costs to reserve, by these prices.
    pub(super) fn costs(&self, prices: &Prices) -> Costs {
        match &self.amounts {
            Amounts::Costs(costs) => costs.clone(),
            Amounts::Usage(usage) => {
                let usage = usage.amounts();
                let amounts = prices.amounts(&usage).chain([("requests", 1)]);
                // A policy cannot price requests, nor more units than a request can cost.
                Costs::of(amounts).unwrap_or_default()
            }
        }
    }

    pub(super) const fn known_input_tokens(&self) -> Option<u64> {
        self.input_tokens
    }

    pub(super) fn terms(&self) -> ReservationTerms {
        // The ttl is in range.
        ReservationTerms::default().ttl(self.ttl).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate::{Costs, Policy, ReservationTerms};

    use super::Estimate;
    use crate::usage::TokenUsage;

    #[test]
    fn tokens_are_priced_by_the_policy() {
        let text = "version: 1\nprices: { usd_micros: { input: 150, output: 600, per: 1000 } }";
        let policy = Policy::from_yaml("p", text, Policy::builtin_limit()).unwrap();
        let estimate = Estimate::of_usage(TokenUsage { input: 1000, output: 1 });
        let expected = Costs::of([("requests", 1), ("tokens", 1001), ("usd_micros", 151)]);
        assert_eq!(estimate.costs(policy.prices()), expected.unwrap());
        assert_eq!(estimate.known_input_tokens(), Some(1000));
        assert_eq!(estimate.input_tokens(7).known_input_tokens(), Some(7));
    }

    #[test]
    fn ttl_is_at_least_a_millisecond_and_at_most_a_day() {
        let terms = |ttl| Estimate::of(Costs::requests(1)).ttl(ttl).terms();
        let expected = |ttl| ReservationTerms::default().ttl(ttl).unwrap();
        assert_eq!(terms(Duration::ZERO), expected(Duration::from_millis(1)));
        assert_eq!(terms(Duration::from_secs(600)), expected(Duration::from_secs(600)));
        assert_eq!(terms(Duration::MAX), expected(Duration::from_secs(86_400)));
    }
}
