//! The final amounts of a reservation.

use tollgate::Costs;
use tollgate::policy::Prices;
use tollgate::reservation::FinalCosts;

use crate::usage::{TokenUsage, Usage};

use super::settings::no_costs;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseOutcome {
    Success,
    /// A status of 400 or above, an error of the service, or a request that the service did not receive.
    Failure,
}

/// Returns the final amounts of a reservation with this estimate: those that are known. Of the other units, a success
/// keeps the estimate, because they may have been used. A failure is charged only for its requests.
pub(super) fn final_costs(estimate: &Costs, known: Costs, response: ResponseOutcome) -> FinalCosts {
    if response == ResponseOutcome::Success {
        return FinalCosts::of(known);
    }
    let units = estimate.iter().map(|(unit, _)| unit);
    let unused = units.filter(|unit| !unit.is_requests() && known.named(unit).is_none());
    let unused = unused.map(|unit| (unit.as_str(), 0));
    let amounts = known.iter().map(|(unit, amount)| (unit.as_str(), amount)).chain(unused);
    // More units than a request can have: the known ones.
    let costs = Costs::of(amounts.collect::<Vec<_>>());
    FinalCosts::of(costs.unwrap_or(known))
}

/// Returns the amounts of a usage by unit; none if it is not known. `input`: the input tokens, if the response does not
/// report them.
pub(super) fn costs_of_usage(
    prices: &Prices,
    usage: Usage,
    (input, response): (Option<u64>, ResponseOutcome),
) -> Costs {
    // Without a reported input, the text of a failure is that of an error, not of a model.
    let input = input.filter(|_| response == ResponseOutcome::Success);
    let tokens = match usage {
        Usage::Exact(tokens) => Some(tokens),
        Usage::Estimated { input: reported, output } => {
            reported.or(input).map(|input| TokenUsage { input, output })
        }
        Usage::Unknown => None,
    };
    let Some(tokens) = tokens else { return no_costs() };
    let amounts: Vec<_> = prices.amounts(&tokens.amounts()).collect();
    // A policy cannot price more units than a request can cost.
    Costs::of(amounts).unwrap_or_else(|_| no_costs())
}

#[cfg(test)]
mod tests {
    use tollgate::{Costs, Policy};

    use super::{ResponseOutcome, costs_of_usage, final_costs, no_costs};
    use crate::usage::{TokenUsage, Usage};
    use ResponseOutcome::{Failure, Success};

    fn of(amounts: &[(&str, u64)]) -> Costs {
        Costs::of(amounts.iter().copied()).unwrap()
    }

    #[test]
    fn units_without_an_amount_keep_their_estimate_unless_the_request_failed() {
        let estimate = of(&[("requests", 1), ("tokens", 900), ("usd", 30)]);
        let costs =
            |known, response| final_costs(&estimate, known, response).of_estimate(&estimate);
        let tokens = || of(&[("tokens", 7)]);
        assert_eq!(costs(no_costs(), Success), estimate);
        assert_eq!(costs(tokens(), Success), of(&[("requests", 1), ("tokens", 7), ("usd", 30)]));
        assert_eq!(costs(tokens(), Failure), of(&[("requests", 1), ("tokens", 7), ("usd", 0)]));
        assert_eq!(costs(no_costs(), Failure), of(&[("requests", 1), ("tokens", 0), ("usd", 0)]));
    }

    #[test]
    fn usage_is_priced_if_its_input_is_known() {
        let text = "version: 1\nprices: { usd: { input: 1, output: 2, per: 1 } }";
        let policy = Policy::from_yaml("p", text, Policy::builtin_limit()).unwrap();
        let costs = |usage, basis| costs_of_usage(policy.prices(), usage, basis);
        let exact = Usage::Exact(TokenUsage { input: 3, output: 4 });
        let text_only = Usage::Estimated { input: None, output: 4 };
        let early = Usage::Estimated { input: Some(3), output: 4 };
        let expected = of(&[("tokens", 7), ("usd", 11)]);
        for known in [
            costs(exact, (None, Success)),
            costs(exact, (Some(9), Failure)),
            costs(early, (Some(9), Success)),
            costs(early, (None, Failure)),
            costs(text_only, (Some(3), Success)),
        ] {
            assert_eq!(known, expected);
        }
        for unknown in [
            costs(text_only, (None, Success)),
            costs(text_only, (Some(3), Failure)),
            costs(Usage::Unknown, (Some(3), Success)),
        ] {
            assert_eq!(unknown, no_costs());
        }
    }
}
