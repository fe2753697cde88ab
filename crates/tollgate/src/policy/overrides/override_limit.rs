//! One limit of an override.

use std::str::FromStr;
use std::time::Duration;

use crate::algorithm::{Algorithm, LimitField};
use crate::limit::{Limit, LimitError, LimitSpec, numbered};
use crate::policy::parse::rate::{NO_CALENDAR, Period, Rate};
use crate::policy::rule::Rule;
use crate::unit::Unit;

use super::error::{OverrideError, OverrideErrorKind};

/// One limit of an [`Override`](crate::Override): a count per window, or a number of slots.
///
/// In a rule, it replaces the limit with the same name, or, if it has no name, with the same window and unit. It inherits
/// the algorithm, the unit, the name and the counter of that limit. If the rule has no such limit, it is a new token
/// bucket. Without a name and a unit, it replaces the limit with the same window, first of all one in requests.
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
    /// The unit; by default that of the limit that it replaces, else `requests`.
    pub unit: Option<Unit>,
    /// The name of the limit that it replaces; by default the limit with the same window.
    pub name: Option<String>,
}

impl OverrideLimit {
    /// Creates a limit of `count` per `window`.
    #[must_use]
    pub const fn new(count: u64, window: Duration) -> Self {
        Self { count, window: Some(window), burst: None, algorithm: None, unit: None, name: None }
    }

    /// Creates a limit of `count` slots. It applies only to rules that have a concurrency limit.
    #[must_use]
    pub const fn slots(count: u64) -> Self {
        let algorithm = Some(Algorithm::Concurrency);
        Self { count, window: None, burst: None, algorithm, unit: None, name: None }
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

    /// Sets the unit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{OverrideLimit, Unit};
    ///
    /// let tokens = OverrideLimit::new(200_000, Duration::from_secs(60)).in_unit(Unit::new("tokens")?);
    /// assert_eq!(tokens.unit, Some(Unit::new("tokens")?));
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    #[must_use]
    pub fn in_unit(self, unit: Unit) -> Self {
        Self { unit: Some(unit), ..self }
    }

    /// Sets the name of the limit that it replaces.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    pub(super) fn shares_counter_with(&self, other: &Self) -> bool {
        (self.window, &self.unit, &self.name) == (other.window, &other.unit, &other.name)
    }

    /// Creates the limit of a specification and validates it as far as this is possible without the rule.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{LimitField, LimitSpec, OverrideLimit};
    ///
    /// let spec = LimitSpec::rate(20, Duration::from_secs(60));
    /// assert_eq!(OverrideLimit::from_spec(&spec), Ok(OverrideLimit::new(20, Duration::from_secs(60))));
    /// let error = OverrideLimit::from_spec(&LimitSpec { burst: Some(0), ..spec }).unwrap_err();
    /// assert_eq!(error.field(), Some(LimitField::Burst));
    /// ```
    ///
    /// # Errors
    /// `align`, `tz` or `ttl` is set, or no rule can have such a limit.
    pub fn from_spec(spec: &LimitSpec) -> Result<Self, LimitError> {
        let of_rule = [LimitField::Align, LimitField::Tz, LimitField::Ttl];
        if let Some(field) = of_rule.into_iter().find(|field| spec.is_set(*field)) {
            return Err(LimitError::not_in_overrides(field));
        }
        let count = spec.count.ok_or(LimitError::missing(LimitField::Count))?;
        if count == 0 && spec.unit.is_some() {
            return Err(LimitError::not_supported(LimitField::Unit, Algorithm::Block));
        }
        let built = LimitSpec { count: Some(count.max(1)), ..spec.clone() }.build();
        match built {
            // Numbers that a token bucket cannot combine can be valid for the algorithm of the rule's limit.
            Err(error) if spec.algorithm.is_some() || error.field().is_some() => Err(error),
            Ok(_) | Err(_) => Ok(Self {
                count,
                window: spec.window,
                burst: spec.burst,
                algorithm: spec.algorithm,
                unit: spec.unit.clone(),
                name: spec.name.clone(),
            }),
        }
    }

    /// Builds the limit for a rule, beside the limits that `earlier` entries build; `None` if it sets slots and the rule
    /// has no concurrency limit.
    pub(super) fn build(
        &self,
        rule: &Rule,
        earlier: &[Limit],
    ) -> Result<Option<Limit>, LimitError> {
        let mut candidates = rule.limits().iter().filter(|limit| self.replaces(limit));
        let in_requests = candidates.clone().find(|limit| limit.unit().is_requests());
        let replaced = in_requests.or_else(|| candidates.next());
        if self.is_slots() && replaced.is_none() {
            return Ok(None);
        }
        let limit = self.spec(replaced).build()?;
        match replaced {
            Some(replaced) => Ok(Some(limit.with_identity_of(replaced))),
            None => {
                let limit = limit.in_rule(rule.name());
                let limit = limit.map_err(|error| LimitError::of_quota(error, false))?;
                let others = rule.limits().iter().chain(earlier);
                let is_used =
                    |limit: &Limit| others.clone().any(|other| other.name() == limit.name());
                Ok(Some(if limit.is_named() { limit } else { numbered(&limit, is_used) }))
            }
        }
    }

    /// The specification of the limit. Fields that it does not set are those of the limit that it replaces.
    fn spec(&self, replaced: Option<&Limit>) -> LimitSpec {
        let own = LimitSpec {
            algorithm: self.algorithm,
            count: Some(self.count),
            window: self.window,
            burst: self.burst,
            unit: self.unit.clone(),
            // A default name of the limit that it replaces, such as `60s#2`, is not a valid name.
            name: self.name.clone().filter(|_| replaced.is_none()),
            ..LimitSpec::default()
        };
        if self.count == 0 {
            return LimitSpec { count: own.count, name: own.name, ..LimitSpec::default() };
        }
        let Some(replaced) = replaced else { return own };
        let inherited = replaced.unnamed_spec();
        let unit = own.unit.clone().or_else(|| inherited.unit.clone());
        if self.is_slots() {
            return LimitSpec { count: own.count, ..inherited };
        }
        // A calendar window stays aligned unless the window or the algorithm changes.
        let stays_aligned = inherited.align.is_some()
            && self.window == Some(replaced.window())
            && self.algorithm.is_none_or(|algorithm| Some(algorithm) == inherited.algorithm);
        if stays_aligned {
            return LimitSpec { count: own.count, burst: own.burst, unit, ..inherited };
        }
        let inherited = inherited.algorithm.filter(|algorithm| *algorithm != Algorithm::Block);
        LimitSpec { algorithm: own.algorithm.or(inherited), unit, ..own }
    }

    pub(super) fn is_slots(&self) -> bool {
        self.algorithm.is_some_and(Algorithm::holds_slots)
    }

    fn replaces(&self, limit: &Limit) -> bool {
        let has_slots = limit.algorithm().holds_slots();
        let is_named = self.name.as_deref().is_none_or(|name| name == limit.name());
        let has_unit = self.unit.as_ref().is_none_or(|unit| unit == limit.unit());
        let has_window = self.name.is_some() || (has_unit && self.window == Some(limit.window()));
        has_slots == self.is_slots() && is_named && (has_slots || has_window)
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
            Rate::Count { .. } => Err(invalid(NO_CALENDAR.into())),
        }
    }
}
