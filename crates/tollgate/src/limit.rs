//! Limits: a named quota with an algorithm.

mod constructors;
mod display;
mod encoding;
mod error;
pub(crate) mod identity;
mod lease;
mod registry_cell;
mod spec;
mod unique_names;

use std::sync::Arc;
use std::time::Duration;

pub use display::RateText;
pub use error::LimitError;
pub use lease::LeaseSize;
use lease::LeaseTerms;
pub(crate) use registry_cell::RegistryCell;
pub use spec::LimitSpec;
pub(crate) use unique_names::unique_names;
#[cfg(feature = "policy")]
pub(crate) use unique_names::{duplicate_name, numbered};

use crate::algorithm::{Algorithm, Calendar, Letter, LimitField, Parameters};
use crate::naming::valid_name;
use crate::quota::{QuotaError, QuotaErrorKind};
use crate::unit::Unit;

/// Rule name of limits that belong to no rule.
pub(crate) const DEFAULT_RULE: &str = "default";
/// Rule name of inline limits, which are part of a request.
pub(crate) const INLINE_RULE: &str = "inline";

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
    // Shared, because every owned decision has a copy of its limits.
    rule: Arc<str>,
    name: Arc<str>,
    is_named: bool,
    count: u64,
    window: Duration,
    parameters: Parameters,
    unit: Unit,
    lease: LeaseTerms,
    registry_cell: RegistryCell,
}

impl Limit {
    fn unnamed(name: Box<str>, count: u64, window: Duration, parameters: Parameters) -> Self {
        let registry_cell = RegistryCell::default();
        Self {
            rule: DEFAULT_RULE.into(),
            name: name.into(),
            is_named: false,
            count,
            window,
            parameters,
            unit: Unit::requests(),
            lease: LeaseTerms::default(),
            registry_cell,
        }
    }

    /// Returns the same limit with a name.
    ///
    /// # Errors
    /// The name does not match `[A-Za-z0-9._-]{1,64}`.
    pub fn named(self, name: &str) -> Result<Self, QuotaError> {
        let name = valid_name("limit", name)?.into();
        Ok(Self { name, is_named: true, registry_cell: RegistryCell::default(), ..self })
    }

    /// Returns the same limit as part of a rule. Limits with the same name in different rules are separate.
    ///
    /// # Errors
    /// The rule name does not match `[A-Za-z0-9._-]{1,64}`.
    pub fn in_rule(self, rule: &str) -> Result<Self, QuotaError> {
        let rule = valid_name("rule", rule)?.into();
        Ok(Self { rule, registry_cell: RegistryCell::default(), ..self })
    }

    /// Returns the same limit in another unit. It takes the amount of this unit from the [`Costs`](crate::Costs) of a
    /// request. The unit is not part of the [identity](Self::identity).
    ///
    /// ```
    /// use tollgate::{Limit, Quota, Unit};
    ///
    /// let tokens = Limit::token_bucket(Quota::per_minute(90_000))?.in_unit(Unit::new("tokens")?)?;
    /// assert_eq!((tokens.unit().as_str(), tokens.name()), ("tokens", "60s"));
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    ///
    /// # Errors
    /// The limit is a concurrency limit or a block, and the unit is not `requests`.
    pub fn in_unit(self, unit: Unit) -> Result<Self, QuotaError> {
        if !unit.is_requests() && !self.algorithm().accepts(LimitField::Unit) {
            let reason = "a concurrency limit or a limit of 0 has no unit";
            return Err(QuotaError::fixed(QuotaErrorKind::Unit, reason));
        }
        Ok(Self { unit, registry_cell: RegistryCell::default(), ..self })
    }

    /// Unit that the limit counts; `requests` for concurrency limits and blocks.
    #[must_use]
    #[inline]
    pub const fn unit(&self) -> &Unit {
        &self.unit
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
        self.letter().algorithm()
    }

    /// First letter of the [identity](Self::identity).
    #[must_use]
    pub const fn letter(&self) -> Letter {
        self.parameters.letter()
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
        if let Parameters::Concurrency(parameters) = &self.parameters {
            return Some(parameters.ttl());
        }
        None
    }

    /// Calendar of a calendar window.
    pub(crate) fn calendar(&self) -> Option<&Calendar> {
        if let Parameters::AlignedWindow(parameters) = &self.parameters {
            return Some(parameters.calendar());
        }
        None
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
        format!("{}{}/{}", char::from(self.letter().byte()), self.rule, self.name)
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

    /// Returns the same parameters with the rule, name and size of leases of `other`.
    pub(crate) fn with_identity_of(self, other: &Self) -> Self {
        let (rule, name) = (other.rule.clone(), other.name.clone());
        let limit = Self {
            rule,
            name,
            is_named: other.is_named,
            registry_cell: RegistryCell::default(),
            ..self
        };
        limit.with_lease(other.lease())
    }

    /// Returns true if both limits use the same stored state.
    pub(crate) fn has_same_identity(&self, other: &Self) -> bool {
        self.name == other.name
            && self.rule == other.rule
            && std::mem::discriminant(&self.parameters) == std::mem::discriminant(&other.parameters)
    }
}
