//! A limit: a named quota with an algorithm.

pub(crate) mod identity;
pub(crate) mod spec;

use std::time::Duration;

use crate::algorithm::{
    AlignedWindow, Calendar, CalendarUnit, Concurrency, FixedWindow, Parameters, SlidingCounter,
    SlidingWindow, TokenBucket,
};
use crate::error::{QuotaError, QuotaErrorKind};
use crate::memory::RegisterCell;
use crate::naming::{valid_name, window_name};
use crate::quota::Quota;
use crate::time::saturating_micros;
pub use identity::Algorithm;
use identity::letter;

/// The rule of limits that no policy named.
pub(crate) const DEFAULT_RULE: &str = "default";
/// The rule of limits that come with a request.
pub(crate) const INLINE_RULE: &str = "inline";

const LONGEST_MONTH: Duration = Duration::from_secs(31 * 86_400);
const LONGEST_YEAR: Duration = Duration::from_secs(366 * 86_400);

/// A quota with an algorithm and a name. Always valid once built.
///
/// A key's state is found by the limit's rule, name and algorithm, not by its parameters: give a limit
/// a name, and its parameters may change while keys live. Without one it is called by its window.
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
    registered: RegisterCell,
}

impl Limit {
    /// A burst, refilled evenly.
    ///
    /// # Errors
    /// A rate that needs finer steps than 2^53 can count with this burst. Rates that come within
    /// 10⁻⁹ of it from below are taken.
    pub fn token_bucket(quota: Quota) -> Result<Self, QuotaError> {
        TokenBucket::new(&quota)
            .map(|parameters| Self::of(quota, Parameters::TokenBucket(parameters)))
    }

    /// At most the count in any window, exactly, by a log of accepted takes.
    ///
    /// # Errors
    /// A count above 100 000, or a burst.
    pub fn sliding_window(quota: Quota) -> Result<Self, QuotaError> {
        without_burst(&quota)?;
        SlidingWindow::new(&quota)
            .map(|parameters| Self::of(quota, Parameters::SlidingWindow(parameters)))
    }

    /// The count per window by a weighted estimate, in constant memory.
    ///
    /// # Errors
    /// A burst, or count × window beyond 2^53 in every power of ten that divides the window.
    pub fn sliding_counter(quota: Quota) -> Result<Self, QuotaError> {
        without_burst(&quota)?;
        SlidingCounter::new(&quota)
            .map(|parameters| Self::of(quota, Parameters::SlidingCounter(parameters)))
    }

    /// The count per window; the window opens at the first take after the last one closed.
    ///
    /// # Errors
    /// A burst.
    pub fn fixed_window(quota: Quota) -> Result<Self, QuotaError> {
        without_burst(&quota)?;
        Ok(Self::of(quota, Parameters::FixedWindow(FixedWindow::new(&quota))))
    }

    /// The count per calendar unit in an IANA time zone.
    ///
    /// The calendar is that of the store's clock. [`SystemClock`](crate::SystemClock) reads the wall
    /// clock once per process: a machine that sleeps, or whose clock is set right later, shifts these
    /// windows until the process restarts.
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
    /// A count of zero or above 2^53 − 1, or an unknown time zone.
    pub fn calendar_window(count: u64, unit: CalendarUnit, zone: &str) -> Result<Self, QuotaError> {
        let parameters = AlignedWindow::new(count, Calendar::new(unit, zone)?)?;
        let (name, window) = match (unit.length(), unit) {
            (Some(length), _) => (window_name(saturating_micros(length)), length),
            (None, CalendarUnit::Year) => (unit.as_str().into(), LONGEST_YEAR),
            (None, _) => (unit.as_str().into(), LONGEST_MONTH),
        };
        Ok(Self::unnamed(name, count, window, Parameters::AlignedWindow(parameters)))
    }

    /// At most `count` in flight. A slot is given back by its [permit](crate::Permit), or returns by
    /// itself after `ttl`: choose one longer than the work takes, or renew the permit.
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
    /// A count of zero or above 100 000; a ttl that could not be a quota's period.
    pub fn concurrency(count: u64, ttl: Duration) -> Result<Self, QuotaError> {
        let parameters = Parameters::Concurrency(Concurrency::new(count, ttl)?);
        Ok(Self::unnamed("concurrency".into(), count, Duration::ZERO, parameters))
    }

    /// Refuses everything, always, with [`Verdict::Never`](crate::Verdict::Never).
    #[must_use]
    pub fn block() -> Self {
        Self::unnamed("block".into(), 0, Duration::ZERO, Parameters::Block)
    }

    fn of(quota: Quota, parameters: Parameters) -> Self {
        Self::unnamed(window_name(quota.period_micros()), quota.count(), quota.period(), parameters)
    }

    fn unnamed(name: Box<str>, count: u64, window: Duration, parameters: Parameters) -> Self {
        let registered = RegisterCell::default();
        Self {
            rule: DEFAULT_RULE.into(),
            name,
            is_named: false,
            count,
            window,
            parameters,
            registered,
        }
    }

    /// The same limit under a name of its own.
    ///
    /// # Errors
    /// A name that does not match `[A-Za-z0-9._-]{1,64}`.
    pub fn named(self, name: &str) -> Result<Self, QuotaError> {
        let name = valid_name("limit", name)?;
        Ok(Self { name, is_named: true, registered: RegisterCell::default(), ..self })
    }

    /// The same limit as part of a rule. Limits of the same name in different rules are different.
    ///
    /// # Errors
    /// A rule name that does not match `[A-Za-z0-9._-]{1,64}`.
    pub fn in_rule(self, rule: &str) -> Result<Self, QuotaError> {
        let rule = valid_name("rule", rule)?;
        Ok(Self { rule, registered: RegisterCell::default(), ..self })
    }

    /// Its own name, or what it is called by: its window, such as `60s` or `1500ms`, or `concurrency`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rule it belongs to; `default` when it belongs to none.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// How it counts.
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

    /// The configured count; zero for a block.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The window; of months and years the longest, and none for what has no window.
    #[must_use]
    pub const fn window(&self) -> Duration {
        self.window
    }

    /// After how long a slot returns by itself; none where there are no slots.
    #[must_use]
    pub fn ttl(&self) -> Option<Duration> {
        match &self.parameters {
            Parameters::Concurrency(parameters) => Some(parameters.ttl()),
            _ => None,
        }
    }

    /// The most that can be taken at once: the burst of a bucket, the count of all others.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.parameters.capacity()
    }

    /// The parameters as compiled for the algorithm, for stores.
    #[must_use]
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Under what stores keep its states apart from those of other limits: a letter for the
    /// algorithm, then `rule/name`. [`ListedKey::with_identity`](crate::ListedKey::with_identity) reads it.
    ///
    /// The letter is there because a changed algorithm starts fresh, and nodes that disagree on it
    /// during a deployment must not wipe each other's counts.
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

    /// Whether it came with a request, and is in no policy.
    #[must_use]
    pub fn is_inline(&self) -> bool {
        &*self.rule == INLINE_RULE
    }

    pub(crate) const fn register_cell(&self) -> &RegisterCell {
        &self.registered
    }

    /// Whether it was given its name, or is called by its window.
    pub(crate) const fn is_named(&self) -> bool {
        self.is_named
    }

    /// The same limit, called by another name than its window's.
    pub(crate) fn called(self, name: String) -> Self {
        Self { name: name.into(), registered: RegisterCell::default(), ..self }
    }

    /// The same parameters under the rule and name of another.
    pub(crate) fn instead_of(self, other: &Self) -> Self {
        let (rule, name) = (other.rule.clone(), other.name.clone());
        Self { rule, name, is_named: other.is_named, registered: RegisterCell::default(), ..self }
    }

    /// Whether both would find the same state.
    pub(crate) fn same_scope(&self, other: &Self) -> bool {
        self.name == other.name
            && self.rule == other.rule
            && std::mem::discriminant(&self.parameters) == std::mem::discriminant(&other.parameters)
    }
}

fn without_burst(quota: &Quota) -> Result<(), QuotaError> {
    if quota.has_burst() {
        return Err(QuotaError::fixed(QuotaErrorKind::Burst, "burst is for token buckets only"));
    }
    Ok(())
}
