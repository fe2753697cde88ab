//! One limit of an override.

use std::str::FromStr;
use std::time::Duration;

use crate::algorithm::Parameters;
use crate::limit::{Algorithm, Limit};
use crate::policy::parse::rate::{NO_CALENDAR, Period, Rate};
use crate::policy::rule::Rule;
use crate::quota::{Quota, QuotaError, QuotaErrorKind};

use super::error::{OverrideError, OverrideErrorKind};

/// One limit of an [`Override`](crate::Override): a count per window, or a number of slots.
///
/// In a rule, it replaces the limit with the same name, or, if it has no name, with the same window. It inherits
/// the algorithm, the name and the counter of that limit. If the rule has no such limit, it is a new token
/// bucket.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, OverrideLimit};
///
/// let limit = OverrideLimit::new(20, Duration::from_secs(60)).with_algorithm(Algorithm::TokenBucket).burst(5);
/// assert_eq!((limit.count, limit.burst), (20, Some(5)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverrideLimit {
    /// The maximum cost per window, or the number of slots; 0 refuses every request.
    pub count: u64,
    /// The window; `None` for slots.
    pub window: Option<Duration>,
    /// The burst of a token bucket; by default the count.
    pub burst: Option<u64>,
    /// The algorithm; by default that of the limit that it replaces, else a token bucket.
    pub algorithm: Option<Algorithm>,
    /// The name of the limit that it replaces; by default the limit with the same window.
    pub name: Option<String>,
}

impl OverrideLimit {
    /// Creates a limit of `count` per `window`.
    #[must_use]
    pub const fn new(count: u64, window: Duration) -> Self {
        Self { count, window: Some(window), burst: None, algorithm: None, name: None }
    }

    /// Creates a limit of `count` slots. It applies only to rules that have a concurrency limit.
    #[must_use]
    pub const fn slots(count: u64) -> Self {
        let algorithm = Some(Algorithm::Concurrency);
        Self { count, window: None, burst: None, algorithm, name: None }
    }

    /// Sets the burst of a token bucket.
    #[must_use]
    pub fn burst(self, burst: u64) -> Self {
        Self { burst: Some(burst), ..self }
    }

    /// Sets the algorithm.
    #[must_use]
    pub fn with_algorithm(self, algorithm: Algorithm) -> Self {
        Self { algorithm: Some(algorithm), ..self }
    }

    /// Sets the name of the limit that it replaces.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    pub(super) fn shares_counter_with(&self, other: &Self) -> bool {
        (self.window, &self.name) == (other.window, &other.name)
    }

    /// Builds the limit for a rule; `None` if it sets slots and the rule has no concurrency limit.
    pub(super) fn build(&self, rule: &Rule) -> Result<Option<Limit>, QuotaError> {
        let replaced = rule.limits().iter().find(|limit| self.replaces(limit));
        let limit = match (self.is_slots(), replaced) {
            (true, None) => return Ok(None),
            _ if self.count == 0 => Limit::block(),
            (true, Some(replaced)) => {
                Limit::concurrency(self.count, replaced.ttl().unwrap_or(Duration::ZERO))?
            }
            (false, replaced) => self.build_rate(replaced)?,
        };
        match replaced {
            Some(replaced) => Ok(Some(limit.with_identity_of(replaced))),
            None => {
                let name = self.name.as_deref();
                let limit =
                    name.map_or_else(|| Ok(limit.clone()), |name| limit.clone().named(name));
                limit?.in_rule(rule.name()).map(Some)
            }
        }
    }

    pub(super) fn is_slots(&self) -> bool {
        self.algorithm == Some(Algorithm::Concurrency)
    }

    fn replaces(&self, limit: &Limit) -> bool {
        let has_slots = limit.algorithm() == Algorithm::Concurrency;
        let is_named = self.name.as_deref().is_none_or(|name| name == limit.name());
        let has_window = self.name.is_some() || self.window == Some(limit.window());
        has_slots == self.is_slots() && is_named && (has_slots || has_window)
    }

    /// Builds a rate limit with the algorithm of the limit that it replaces, unless it sets one.
    fn build_rate(&self, replaced: Option<&Limit>) -> Result<Limit, QuotaError> {
        let window = self.window.ok_or_else(|| {
            let reason = "a limit needs a window, unless its algorithm is concurrency";
            QuotaError::fixed(QuotaErrorKind::Period, reason)
        })?;
        // A calendar-aligned window stays aligned.
        if let Some(Parameters::AlignedWindow(parameters)) = replaced.map(Limit::parameters)
            && replaced.is_some_and(|replaced| replaced.window() == window)
            && self.algorithm.is_none_or(|algorithm| algorithm == Algorithm::FixedWindow)
        {
            self.reject_burst()?;
            let calendar = parameters.calendar();
            return Limit::calendar_window(self.count, calendar.unit(), calendar.zone());
        }
        let inherited =
            replaced.map(Limit::algorithm).filter(|algorithm| *algorithm != Algorithm::Block);
        let algorithm = self.algorithm.or(inherited).unwrap_or(Algorithm::TokenBucket);
        let quota = Quota::try_new(self.count, window)?;
        if algorithm == Algorithm::TokenBucket {
            let quota = self.burst.map_or(Ok(quota), |burst| quota.try_burst(burst))?;
            return Limit::token_bucket(quota);
        }
        self.reject_burst()?;
        match algorithm {
            Algorithm::SlidingCounter => Limit::sliding_counter(quota),
            Algorithm::FixedWindow => Limit::fixed_window(quota),
            _ => Limit::sliding_window(quota),
        }
    }

    fn reject_burst(&self) -> Result<(), QuotaError> {
        match self.burst {
            None => Ok(()),
            Some(_) => {
                let reason = "burst is only valid with algorithm token_bucket";
                Err(QuotaError::fixed(QuotaErrorKind::Burst, reason))
            }
        }
    }
}

/// The window of a block that is written as `0`. Any window works, because a block counts nothing.
const BLOCK_WINDOW: Duration = Duration::from_secs(60);

/// Parses a rate in policy syntax: `10/min`, `100/60s`, `0`.
///
/// ```
/// use std::time::Duration;
/// use tollgate::OverrideLimit;
///
/// assert_eq!("20/min".parse(), Ok(OverrideLimit::new(20, Duration::from_secs(60))));
/// assert!("20".parse::<OverrideLimit>().is_err());
/// ```
impl FromStr for OverrideLimit {
    type Err = OverrideError;

    fn from_str(text: &str) -> Result<Self, OverrideError> {
        let invalid = |reason| OverrideError::new(OverrideErrorKind::Limits, reason);
        match Rate::parse(text).map_err(invalid)? {
            Rate::Block => Ok(Self::new(0, BLOCK_WINDOW)),
            Rate::Count { count, period: Period::Duration(window) } => Ok(Self::new(count, window)),
            Rate::Count { .. } => Err(invalid(NO_CALENDAR)),
        }
    }
}
