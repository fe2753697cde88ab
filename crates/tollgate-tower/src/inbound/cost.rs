//! Request costs and the time at which they are charged.

use std::sync::Arc;

use http::{HeaderName, response};
use tollgate::{Costs, Unit, Verb};

use crate::facts::RequestHead;
use crate::header_value::parse_digits;

/// The responses that count toward the limits, where not all do.
///
/// ```
/// use tollgate::{Limiter, MemoryStore, Policy};
/// use tollgate_tower::{CountedResponses, RateLimitLayer};
///
/// // Limits wrong passwords; a correct one costs nothing.
/// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
/// let logins =
///     RateLimitLayer::builder(limiter).count_responses(CountedResponses::Failures).build();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedResponses {
    /// Responses with a status of 400 or above (for example wrong passwords), and gRPC calls refused without a body. A
    /// gRPC status in trailers arrives too late to count.
    Failures,
    /// All other responses: failed requests are not charged.
    Successes,
}

/// The cost of a request at admission.
#[derive(Default)]
pub(super) enum Cost {
    #[default]
    One,
    Header(HeaderName),
    Function(Box<dyn Fn(&RequestHead<'_>) -> u64 + Send + Sync>),
    ByUnit(CostsOfRequest),
}

/// The costs of a request by unit.
type CostsOfRequest = Box<dyn Fn(&RequestHead<'_>) -> Costs + Send + Sync>;

impl Cost {
    #[inline]
    fn of_request(&self, request: &RequestHead<'_>) -> AdmissionCharge {
        match self {
            Self::One => AdmissionCharge::Take(1),
            Self::Header(name) => {
                let cost = largest_value(request, name).filter(|cost| *cost > 0);
                AdmissionCharge::Take(cost.unwrap_or(1))
            }
            Self::Function(cost) => AdmissionCharge::Take(cost(request)),
            Self::ByUnit(costs) => AdmissionCharge::TakeByUnit(costs(request)),
        }
    }
}

/// Returns the largest number in a header. The gateway may have appended its value to one that the client sent; the
/// largest cannot be used to lower the cost.
fn largest_value(request: &RequestHead<'_>, name: &HeaderName) -> Option<u64> {
    let values = request.headers.get_all(name).iter();
    values.filter_map(|value| parse_digits(value.as_bytes())).max()
}

/// When the cost of a request is known and charged.
#[derive(Default)]
pub(super) enum ChargeTiming {
    #[default]
    Admission,
    ResponseHead(Box<dyn Fn(&response::Parts) -> u64 + Send + Sync>),
    ResponseSize(CostOfSize),
}

/// The cost of a response body of this many bytes.
pub(super) type CostOfSize = Arc<dyn Fn(u64) -> u64 + Send + Sync>;

type IsCounted = Box<dyn Fn(&response::Parts) -> bool + Send + Sync>;

#[derive(Default)]
pub(super) struct CostSettings {
    pub(super) cost: Cost,
    /// Selects the responses that count; without it all count.
    pub(super) is_counted: Option<IsCounted>,
    pub(super) timing: ChargeTiming,
}

/// What the limiter takes at admission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AdmissionCharge {
    /// Takes this number of requests.
    Take(u64),
    /// Takes these costs.
    TakeByUnit(Costs),
    /// Checks that quota is left and takes concurrency slots only.
    Admit,
}

impl AdmissionCharge {
    pub(super) const fn verb(&self) -> Verb {
        match self {
            Self::Take(_) | Self::TakeByUnit(_) => Verb::Take,
            Self::Admit => Verb::Admit,
        }
    }

    /// Returns the cost in requests.
    pub(super) fn requests(&self) -> u64 {
        match self {
            Self::Take(cost) => *cost,
            Self::TakeByUnit(costs) => costs.get(&Unit::requests()),
            Self::Admit => 1,
        }
    }

    /// Returns the costs if they can name other units than requests.
    pub(super) const fn by_unit(&self) -> Option<&Costs> {
        match self {
            Self::TakeByUnit(costs) => Some(costs),
            Self::Take(_) | Self::Admit => None,
        }
    }

    pub(super) fn costs(&self) -> Costs {
        match self {
            Self::TakeByUnit(costs) => costs.clone(),
            Self::Take(_) | Self::Admit => Costs::requests(self.requests()),
        }
    }
}

impl CostSettings {
    #[inline]
    pub(super) fn at_admission(&self, request: &RequestHead<'_>) -> AdmissionCharge {
        match self.timing {
            ChargeTiming::Admission => self.cost.of_request(request),
            ChargeTiming::ResponseHead(_) | ChargeTiming::ResponseSize(_) => AdmissionCharge::Admit,
        }
    }

    /// Returns whether a refund or debit may follow the response.
    pub(super) fn is_settled_after_response(&self) -> bool {
        self.is_counted.is_some() || !matches!(self.timing, ChargeTiming::Admission)
    }

    pub(super) fn counts(&self, response: &response::Parts) -> bool {
        self.is_counted.as_ref().is_none_or(|is_counted| is_counted(response))
    }
}

/// A gRPC response without a body has its status in a header.
pub(super) fn is_failure(response: &response::Parts) -> bool {
    let grpc_status = response.headers.get("grpc-status");
    let is_grpc_failure = grpc_status.is_some_and(|code| code.as_bytes() != b"0");
    is_grpc_failure || response.status.as_u16() >= 400
}
