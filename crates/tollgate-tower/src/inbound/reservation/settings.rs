//! Settings of reservations: the estimate, and where the final amounts are found.

use http::{HeaderName, response};
use tollgate::{Costs, Unit};

use super::estimate::Estimate;
use crate::facts::RequestHead;
use crate::header_value::{parse_digits, single_value};
use crate::usage::UsageReader;

type EstimateOfRequest = Box<dyn Fn(&RequestHead<'_>) -> Estimate + Send + Sync>;

#[derive(Default)]
pub(in crate::inbound) struct ReservationSettings {
    /// Without it, the layer does not reserve.
    pub(super) estimate: Option<EstimateOfRequest>,
    pub(super) settle_by: SettleBy,
}

/// Where the final amounts are found.
#[derive(Default)]
pub(super) enum SettleBy {
    /// Nowhere: the estimate is final.
    #[default]
    Estimate,
    /// In the token usage of the response body.
    Usage,
    /// In response headers, each with the amount of one unit.
    Headers(Vec<(HeaderName, Unit)>),
    /// In the response head, by a function.
    Head(Box<dyn Fn(&response::Parts) -> Costs + Send + Sync>),
}

/// Where the final amounts of one response are found.
pub(super) enum AmountSource {
    /// The units that the costs name have these amounts.
    Known(Costs),
    /// The usage is read from the body; without a reader, it is unknown.
    Body(Option<Box<UsageReader>>),
}

impl ReservationSettings {
    #[inline]
    pub(in crate::inbound) const fn is_enabled(&self) -> bool {
        self.estimate.is_some()
    }

    /// Returns where the final amounts of this response are found.
    pub(super) fn amount_source(&self, head: &response::Parts) -> AmountSource {
        match &self.settle_by {
            SettleBy::Estimate => AmountSource::none(),
            SettleBy::Usage => {
                AmountSource::Body(UsageReader::for_headers(&head.headers).map(Box::new))
            }
            SettleBy::Headers(headers) => AmountSource::of_headers(headers, head),
            SettleBy::Head(costs) => AmountSource::Known(costs(head)),
        }
    }

    /// Adds a header with the amount of a unit. A unit has one header: a second one replaces it.
    pub(super) fn add_header(&mut self, name: HeaderName, unit: Unit) {
        if !matches!(self.settle_by, SettleBy::Headers(_)) {
            self.settle_by = SettleBy::Headers(Vec::new());
        }
        if let SettleBy::Headers(headers) = &mut self.settle_by {
            headers.retain(|(_, other)| *other != unit);
            headers.push((name, unit));
        }
    }
}

impl AmountSource {
    /// No amount is known.
    pub(super) fn none() -> Self {
        Self::Known(no_costs())
    }

    /// A header that is missing, repeated or not a number has no amount.
    fn of_headers(headers: &[(HeaderName, Unit)], head: &response::Parts) -> Self {
        let amount = |name: &HeaderName| single_value(&head.headers, name).and_then(parse_digits);
        let amounts = headers.iter().filter_map(|(name, unit)| Some((unit, amount(name)?)));
        let amounts: Vec<_> = amounts.map(|(unit, amount)| (unit.as_str(), amount)).collect();
        Self::Known(Costs::of(amounts).unwrap_or_else(|_| no_costs()))
    }
}

/// Returns costs that name no unit.
pub(super) fn no_costs() -> Costs {
    Costs::of([("", 0); 0]).unwrap_or_default()
}
