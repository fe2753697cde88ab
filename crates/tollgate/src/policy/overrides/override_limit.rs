//! One limit of an override: numbers, and how they are counted where that is said.

use std::str::FromStr;
use std::time::Duration;

use crate::algorithm::Parameters;
use crate::error::{QuotaError, QuotaErrorKind};
use crate::limit::Limit;
use crate::policy::read::rate::{Period, Rate};
use crate::policy::rule::Rule;

use super::error::{OverrideError, OverrideErrorKind};
use crate::limit::identity::Algorithm;
use crate::quota::Quota;

/// A count in a window, to be counted as the rule counts that it is put into.
///
/// It takes algorithm, name and thereby the counter from the rule's limit with the same window (or the same name,
/// where it has one). If there is none it is a token bucket.
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
    /// How much; 0 refuses everything.
    pub count: u64,
    /// In which time; none for slots, which have none.
    pub window: Option<Duration>,
    /// How much at once, of a token bucket.
    pub burst: Option<u64>,
    /// How it is counted, if not as the rule says.
    pub algorithm: Option<Algorithm>,
    /// Which limit of the rule it replaces, if not the one with its window.
    pub name: Option<String>,
}

impl OverrideLimit {
    /// So much in any such time.
    #[must_use]
    pub const fn new(count: u64, window: Duration) -> Self {
        Self { count, window: Some(window), burst: None, algorithm: None, name: None }
    }

    /// So many slots, in rules that limit what is in flight. Other rules it leaves alone.
    #[must_use]
    pub const fn slots(count: u64) -> Self {
        let algorithm = Some(Algorithm::Concurrency);
        Self { count, window: None, burst: None, algorithm, name: None }
    }

    /// The same with so much at once.
    #[must_use]
    pub fn burst(self, burst: u64) -> Self {
        Self { burst: Some(burst), ..self }
    }

    /// The same, counted like this.
    #[must_use]
    pub fn with_algorithm(self, algorithm: Algorithm) -> Self {
        Self { algorithm: Some(algorithm), ..self }
    }

    /// The same, for the limit of this name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    pub(super) fn shares_with(&self, other: &Self) -> bool {
        (self.window, &self.name) == (other.window, &other.name)
    }

    /// The limit it makes in a rule; none where the rule has no slots to change.
    pub(super) fn build(&self, rule: &Rule) -> Result<Option<Limit>, QuotaError> {
        let like = rule.limits().iter().find(|limit| self.replaces(limit));
        let limit = match (self.is_slots(), like) {
            (true, None) => return Ok(None),
            _ if self.count == 0 => Limit::block(),
            (true, Some(like)) => {
                Limit::concurrency(self.count, like.ttl().unwrap_or(Duration::ZERO))?
            }
            (false, like) => self.counted_like(like)?,
        };
        match like {
            Some(like) => Ok(Some(limit.with_identity_of(like))),
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

    fn counted_like(&self, like: Option<&Limit>) -> Result<Limit, QuotaError> {
        let window = self.window.ok_or_else(|| {
            QuotaError::fixed(QuotaErrorKind::Period, "a limit without a window counts slots")
        })?;
        // A window of the calendar stays one.
        if let Some(Parameters::AlignedWindow(numbers)) = like.map(Limit::parameters)
            && like.is_some_and(|like| like.window() == window)
            && self.algorithm.is_none_or(|own| own == Algorithm::FixedWindow)
        {
            self.without_burst()?;
            let calendar = numbers.calendar();
            return Limit::calendar_window(self.count, calendar.unit(), calendar.zone());
        }
        let inherited = like.map(Limit::algorithm).filter(|one| *one != Algorithm::Block);
        let algorithm = self.algorithm.or(inherited).unwrap_or(Algorithm::TokenBucket);
        let quota = Quota::try_new(self.count, window)?;
        if algorithm == Algorithm::TokenBucket {
            let quota = self.burst.map_or(Ok(quota), |burst| quota.try_burst(burst))?;
            return Limit::token_bucket(quota);
        }
        self.without_burst()?;
        match algorithm {
            Algorithm::SlidingCounter => Limit::sliding_counter(quota),
            Algorithm::FixedWindow => Limit::fixed_window(quota),
            _ => Limit::sliding_window(quota),
        }
    }

    fn without_burst(&self) -> Result<(), QuotaError> {
        match self.burst {
            None => Ok(()),
            Some(_) => {
                Err(QuotaError::fixed(QuotaErrorKind::Burst, "burst is for token buckets only"))
            }
        }
    }
}

/// What refuses everything may have any window.
const ANY: Duration = Duration::from_secs(60);

/// A rate, as policies write it: `10/min`, `100/60s`, `0`.
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
        let wrong = |reason| OverrideError::new(OverrideErrorKind::Limits, reason);
        match Rate::parse(text).map_err(wrong)? {
            Rate::Block => Ok(Self::new(0, ANY)),
            Rate::Count { count, period: Period::Length(window) } => Ok(Self::new(count, window)),
            Rate::Count { .. } => Err(wrong("months and years differ in length; give it in days")),
        }
    }
}
