//! Limits: a named quota with an algorithm.

pub(crate) mod identity;
mod registry_cell;
pub(crate) mod spec;
mod unique_names;

use std::time::Duration;

use crate::algorithm::{
    AlignedWindow, Calendar, CalendarUnit, Concurrency, FixedWindow, Parameters, SlidingCounter,
    SlidingWindow, TokenBucket,
};
use crate::naming::{valid_name, window_name};
use crate::quota::{Quota, QuotaError, QuotaErrorKind};
use crate::time::saturating_micros;
pub use identity::Algorithm;
use identity::letter;
pub(crate) use registry_cell::RegistryCell;
#[cfg(feature = "policy")]
pub(crate) use unique_names::duplicate_name;
pub(crate) use unique_names::unique_names;

/// Rule name of limits that belong to no rule.
pub(crate) const DEFAULT_RULE: &str = "default";
/// Rule name of inline limits, which are part of a request.
pub(crate) const INLINE_RULE: &str = "inline";

const LONGEST_MONTH: Duration = Duration::from_secs(31 * 86_400);
const LONGEST_YEAR: Duration = Duration::from_secs(366 * 86_400);

/// A quota with an algorithm and a name. Always valid once built.
///
/// Stores find a key's state by the limit's rule, name and algorithm, not by its parameters. Name a limit
/// to keep the state when its window changes; an unnamed limit is named after its window.
///
/// ```
/// use tollgate::{Limit, Quota};
///
/// let minute = Limit::token_bucket(Quota::per_minute(10))?;
/// assert_eq!(minute.name(), "60s");
/// let search = Limit::sliding_window(Quota::per_minute(100))?.named("search")?;
/// assert_eq!(search.name(), "search");
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    rule: Box<str>,
    name: Box<str>,
    is_named: bool,
    count: u64,
    window: Duration,
    parameters: Parameters,
    registry_cell: RegistryCell,
}

impl Limit {
    /// Creates a token bucket: a burst that refills at a constant rate.
    ///
    /// # Errors
    /// The rate and burst exceed 2^53 steps, and no rate at most 10⁻⁹ lower fits.
    pub fn token_bucket(quota: Quota) -> Result<Self, QuotaError> {
        TokenBucket::new(&quota)
            .map(|parameters| Self::of(quota, Parameters::TokenBucket(parameters)))
    }

    /// Creates a sliding window: at most the count in any window, exactly, by a log of accepted takes.
    ///
    /// # Errors
    /// The count is above 100 000, or a burst is set.
    pub fn sliding_window(quota: Quota) -> Result<Self, QuotaError> {
        without_burst(&quota)?;
        SlidingWindow::new(&quota)
            .map(|parameters| Self::of(quota, Parameters::SlidingWindow(parameters)))
    }

    /// Creates a sliding counter: the count per window by a weighted estimate, in constant memory.
    ///
    /// # Errors
    /// A burst is set, or count × window exceeds 2^53 in every power-of-ten unit (µs) that divides the window.
    pub fn sliding_counter(quota: Quota) -> Result<Self, QuotaError> {
        without_burst(&quota)?;
        SlidingCounter::new(&quota)
            .map(|parameters| Self::of(quota, Parameters::SlidingCounter(parameters)))
    }

    /// Creates a fixed window, which opens at the first take after the previous window closed.
    ///
    /// # Errors
    /// A burst is set.
    pub fn fixed_window(quota: Quota) -> Result<Self, QuotaError> {
        without_burst(&quota)?;
        Ok(Self::of(quota, Parameters::FixedWindow(FixedWindow::new(&quota))))
    }

    /// Creates a fixed window aligned to a calendar unit in an IANA time zone.
    ///
    /// The store's clock selects the window. [`SystemClock`](crate::SystemClock) reads the wall clock once
    /// per process: if the machine sleeps or its wall clock is corrected, the windows are shifted until
    /// the process restarts.
    ///
    /// ```
    /// use tollgate::{Limit, algorithm::CalendarUnit};
    ///
    /// let monthly = Limit::calendar_window(1_000_000, CalendarUnit::Month, "America/New_York")?;
    /// assert_eq!(monthly.name(), "month");
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    ///
    /// # Errors
    /// The count is 0 or above 2^53 − 1, or the time zone is unknown.
    pub fn calendar_window(count: u64, unit: CalendarUnit, zone: &str) -> Result<Self, QuotaError> {
        let parameters = AlignedWindow::new(count, Calendar::new(unit, zone)?)?;
        let (name, window) = match (unit.length(), unit) {
            (Some(length), _) => (window_name(saturating_micros(length)), length),
            (None, CalendarUnit::Year) => (unit.as_str().into(), LONGEST_YEAR),
            (None, _) => (unit.as_str().into(), LONGEST_MONTH),
        };
        Ok(Self::unnamed(name, count, window, Parameters::AlignedWindow(parameters)))
    }

    /// Creates a concurrency limit: at most `count` requests in flight. A [permit](crate::Permit) releases
    /// its slots; an unreleased slot expires after `ttl`. Choose a `ttl` longer than the work, or renew the permit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Limit;
    ///
    /// let exports = Limit::concurrency(3, Duration::from_secs(60))?;
    /// assert_eq!((exports.name(), exports.capacity()), ("concurrency", 3));
    /// assert_eq!(exports.ttl(), Some(Duration::from_secs(60)));
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    ///
    /// # Errors
    /// The count is 0 or above 100 000, or the `ttl` is not a valid quota period.
    pub fn concurrency(count: u64, ttl: Duration) -> Result<Self, QuotaError> {
        let parameters = Parameters::Concurrency(Concurrency::new(count, ttl)?);
        Ok(Self::unnamed("concurrency".into(), count, Duration::ZERO, parameters))
    }

    /// Creates a block (limit 0), which refuses every request with [`Verdict::Never`](crate::Verdict::Never).
    #[must_use]
    pub fn block() -> Self {
        Self::unnamed("block".into(), 0, Duration::ZERO, Parameters::Block)
    }

    fn of(quota: Quota, parameters: Parameters) -> Self {
        Self::unnamed(window_name(quota.period_micros()), quota.count(), quota.period(), parameters)
    }

    fn unnamed(name: Box<str>, count: u64, window: Duration, parameters: Parameters) -> Self {
        let registry_cell = RegistryCell::default();
        Self {
            rule: DEFAULT_RULE.into(),
            name,
            is_named: false,
            count,
            window,
            parameters,
            registry_cell,
        }
    }

    /// Returns the same limit with a name.
    ///
    /// # Errors
    /// The name does not match `[A-Za-z0-9._-]{1,64}`.
    pub fn named(self, name: &str) -> Result<Self, QuotaError> {
        let name = valid_name("limit", name)?;
        Ok(Self { name, is_named: true, registry_cell: RegistryCell::default(), ..self })
    }

    /// Returns the same limit as part of a rule. Limits with the same name in different rules are separate.
    ///
    /// # Errors
    /// The rule name does not match `[A-Za-z0-9._-]{1,64}`.
    pub fn in_rule(self, rule: &str) -> Result<Self, QuotaError> {
        let rule = valid_name("rule", rule)?;
        Ok(Self { rule, registry_cell: RegistryCell::default(), ..self })
    }

    /// Name of the limit. An unnamed limit has its window as name, such as `60s` or `1500ms`, or `concurrency`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name of the limit's rule; `default` if it belongs to no rule.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Algorithm of the limit.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        match self.parameters {
            Parameters::Block => Algorithm::Block,
            Parameters::TokenBucket(_) => Algorithm::TokenBucket,
            Parameters::SlidingWindow(_) => Algorithm::SlidingWindow,
            Parameters::SlidingCounter(_) => Algorithm::SlidingCounter,
            Parameters::FixedWindow(_) | Parameters::AlignedWindow(_) => Algorithm::FixedWindow,
            Parameters::Concurrency(_) => Algorithm::Concurrency,
        }
    }

    /// Configured count; 0 for a block.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Window length; the longest possible for months and years, zero for concurrency limits and blocks.
    #[must_use]
    pub const fn window(&self) -> Duration {
        self.window
    }

    /// Time after which an unreleased slot expires; `None` if the limit has no slots.
    #[must_use]
    pub fn ttl(&self) -> Option<Duration> {
        match &self.parameters {
            Parameters::Concurrency(parameters) => Some(parameters.ttl()),
            _ => None,
        }
    }

    /// Maximum cost of one take: the burst of a token bucket, otherwise the count.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.parameters.capacity()
    }

    /// Integer parameters of the algorithm, for stores.
    #[must_use]
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Storage identity of the limit: a letter for the algorithm, then `rule/name`. Stores use it in keys;
    /// [`ListedKey::with_identity`](crate::ListedKey::with_identity) parses it.
    ///
    /// It includes the algorithm because a changed algorithm starts fresh, and nodes with different
    /// policies during a rolling deployment must not overwrite each other's counts.
    ///
    /// ```
    /// use tollgate::{Limit, Quota};
    ///
    /// assert_eq!(Limit::token_bucket(Quota::per_minute(10))?.identity(), "tdefault/60s");
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    #[must_use]
    pub fn identity(&self) -> String {
        format!("{}{}/{}", letter(&self.parameters), self.rule, self.name)
    }

    /// Returns true for an inline limit, which is part of a request and in no policy.
    #[must_use]
    pub fn is_inline(&self) -> bool {
        &*self.rule == INLINE_RULE
    }

    pub(crate) const fn registry_cell(&self) -> &RegistryCell {
        &self.registry_cell
    }

    /// Returns true if the limit has an explicit name.
    pub(crate) const fn is_named(&self) -> bool {
        self.is_named
    }

    /// Returns the same unnamed limit with another default name.
    pub(crate) fn with_default_name(self, name: String) -> Self {
        Self { name: name.into(), registry_cell: RegistryCell::default(), ..self }
    }

    /// Returns the same parameters with the rule and name of `other`.
    pub(crate) fn with_identity_of(self, other: &Self) -> Self {
        let (rule, name) = (other.rule.clone(), other.name.clone());
        Self {
            rule,
            name,
            is_named: other.is_named,
            registry_cell: RegistryCell::default(),
            ..self
        }
    }

    /// Returns true if both limits use the same stored state.
    pub(crate) fn has_same_identity(&self, other: &Self) -> bool {
        self.name == other.name
            && self.rule == other.rule
            && std::mem::discriminant(&self.parameters) == std::mem::discriminant(&other.parameters)
    }
}

fn without_burst(quota: &Quota) -> Result<(), QuotaError> {
    if quota.has_burst() {
        return Err(QuotaError::fixed(
            QuotaErrorKind::Burst,
            "burst is supported by token_bucket only",
        ));
    }
    Ok(())
}
