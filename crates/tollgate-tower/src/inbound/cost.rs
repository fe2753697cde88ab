//! What requests cost, and when that is known.

use std::sync::Arc;

use http::{HeaderName, response};
use tollgate::Verb;

use crate::facts::Head;
use crate::header_value::number;

/// Which responses count, where not all do.
///
/// ```
/// use tollgate::{Limiter, MemoryStore, Policy};
/// use tollgate_tower::{Counting, RateLimitLayer};
///
/// // Five wrong passwords are too many; the right one costs nothing.
/// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
/// let logins = RateLimitLayer::builder(limiter).count_only(Counting::Failures).build();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// Those of a status from 400 on, and calls of gRPC that were refused without a body (a status in trailers
    /// comes too late): wrong passwords, say.
    Failures,
    /// All others: what was not served is not charged.
    Successes,
}

/// What a request costs when it comes.
#[derive(Default)]
pub(super) enum Cost {
    #[default]
    One,
    Header(HeaderName),
    Of(Box<dyn Fn(&Head<'_>) -> u64 + Send + Sync>),
}

impl Cost {
    fn of(&self, request: &Head<'_>) -> u64 {
        match self {
            Self::One => 1,
            Self::Header(name) => told(request, name).filter(|cost| *cost > 0).unwrap_or(1),
            Self::Of(cost) => cost(request),
        }
    }
}

/// A gateway may have added its value to one that a client sent. More than can be counted never passes.
fn told(request: &Head<'_>, name: &HeaderName) -> Option<u64> {
    let values = request.headers.get_all(name).iter();
    values.filter_map(|value| number(value.as_bytes())).max()
}

/// When it is paid.
#[derive(Default)]
pub(super) enum Payment {
    /// When a request comes.
    #[default]
    Before,
    /// When its response begins.
    ByHead(Box<dyn Fn(&response::Parts) -> u64 + Send + Sync>),
    /// When its response has ended.
    BySize(Sized),
}

pub(super) type Sized = Arc<dyn Fn(u64) -> u64 + Send + Sync>;

/// Which responses count; all without one.
type Counts = Box<dyn Fn(&response::Parts) -> bool + Send + Sync>;

#[derive(Default)]
pub(super) struct Charging {
    pub(super) cost: Cost,
    pub(super) counts: Option<Counts>,
    pub(super) payment: Payment,
}

/// What is asked of the limiter when a request comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// To take so much.
    Take(u64),
    /// Whether anything is left, and slots.
    Look,
}

impl Entry {
    pub(super) const fn verb(self) -> Verb {
        match self {
            Self::Take(_) => Verb::Take,
            Self::Look => Verb::Admit,
        }
    }

    pub(super) const fn cost(self) -> u64 {
        match self {
            Self::Take(cost) => cost,
            Self::Look => 1,
        }
    }
}

impl Charging {
    pub(super) fn entry(&self, request: &Head<'_>) -> Entry {
        match self.payment {
            Payment::Before => Entry::Take(self.cost.of(request)),
            Payment::ByHead(_) | Payment::BySize(_) => Entry::Look,
        }
    }

    /// Whether anything may be left to settle when the response is there.
    pub(super) fn is_settled_later(&self) -> bool {
        self.counts.is_some() || !matches!(self.payment, Payment::Before)
    }

    pub(super) fn counts(&self, response: &response::Parts) -> bool {
        self.counts.as_ref().is_none_or(|counts| counts(response))
    }
}

/// gRPC says in a header what became of a call that has no body.
pub(super) fn is_failure(response: &response::Parts) -> bool {
    let grpc = response.headers.get("grpc-status");
    let failed = grpc.is_some_and(|code| code.as_bytes() != b"0");
    failed || response.status.as_u16() >= 400
}
