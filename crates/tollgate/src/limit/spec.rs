//! Specification of a limit: its fields as a user writes them, and the one way from there to a limit.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use super::{Limit, LimitError};
use crate::algorithm::{Algorithm, Calendar, CalendarUnit, Letter, LimitField};
use crate::unit::Unit;

/// Fields of a limit as a user writes them. Policies, requests, overrides and stored limits are all mapped to this
/// type, and [`build`](Self::build) validates them.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Limit, LimitSpec, Quota};
///
/// let spec = LimitSpec {
///     algorithm: Some(Algorithm::TokenBucket),
///     burst: Some(20),
///     ..LimitSpec::rate(10, Duration::from_secs(60))
/// };
/// let limit = Limit::token_bucket(Quota::per_minute(10).burst(20))?;
/// assert_eq!(spec.build()?, limit);
/// assert_eq!(limit.spec(), spec);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitSpec {
    /// Algorithm; by default a calendar window if `align` is set, else a token bucket.
    pub algorithm: Option<Algorithm>,
    /// Maximum cost per window, or number of slots; required. 0 is a block.
    pub count: Option<u64>,
    /// Length of the window; required unless `align` is set or the limit has slots.
    pub window: Option<Duration>,
    /// Maximum cost of one take from a full bucket; by default the count.
    pub burst: Option<u64>,
    /// Calendar unit that the window is aligned to.
    pub align: Option<CalendarUnit>,
    /// IANA time zone of the calendar; by default `UTC`.
    pub tz: Option<String>,
    /// Time after which an unreleased slot expires; by default 60 s.
    pub ttl: Option<Duration>,
    /// Unit that the limit counts; by default `requests`.
    pub unit: Option<Unit>,
    /// Name of the limit; by default its window.
    pub name: Option<String>,
}

/// Fields whose presence depends on the algorithm, in the order in which they are checked. `align` selects between
/// two letters of one algorithm and is checked there.
const OPTIONAL: [LimitField; 4] =
    [LimitField::Burst, LimitField::Tz, LimitField::Ttl, LimitField::Window];

impl LimitSpec {
    /// `count` per `window`.
    #[must_use]
    pub fn rate(count: u64, window: Duration) -> Self {
        Self { count: Some(count), window: Some(window), ..Self::default() }
    }

    /// Builds the limit, which belongs to no rule.
    ///
    /// # Errors
    /// A required field is missing, the algorithm does not support a field, or a value is out of range.
    pub fn build(&self) -> Result<Limit, LimitError> {
        let letter = self.letter()?;
        self.check_fields(letter)?;
        let invalid = |error| LimitError::of_quota(error, letter.algorithm().holds_slots());
        let limit = match self.count {
            Some(0) => Limit::block(),
            _ => Limit::of_spec(letter, self).map_err(invalid)?,
        };
        let limit = self.with_unit(limit)?;
        match &self.name {
            Some(name) => limit.named(name).map_err(invalid),
            None => Ok(limit),
        }
    }

    /// Returns the limit in the unit of the specification.
    fn with_unit(&self, limit: Limit) -> Result<Limit, LimitError> {
        let Some(unit) = &self.unit else { return Ok(limit) };
        let algorithm = limit.algorithm();
        if !algorithm.accepts(LimitField::Unit) {
            return Err(LimitError::not_supported(LimitField::Unit, algorithm));
        }
        limit.in_unit(unit.clone()).map_err(|error| LimitError::of_quota(error, false))
    }

    fn letter(&self) -> Result<Letter, LimitError> {
        let is_aligned = self.align.is_some();
        let default = if is_aligned { Algorithm::FixedWindow } else { Algorithm::TokenBucket };
        let algorithm = self.algorithm.unwrap_or(default);
        let is_meant = |letter: &Letter| {
            letter.algorithm() == algorithm && letter.has(LimitField::Align) == is_aligned
        };
        let letter = Letter::ALL.into_iter().find(is_meant);
        letter.ok_or_else(|| LimitError::not_supported(LimitField::Align, algorithm))
    }

    fn check_fields(&self, letter: Letter) -> Result<(), LimitError> {
        for field in OPTIONAL {
            if !self.is_set(field) || letter.has(field) {
                continue;
            }
            match self.align {
                // A calendar window may repeat the length of its unit.
                Some(unit) if field == LimitField::Window && self.window == unit.length() => {}
                Some(_) if field == LimitField::Window => {
                    return Err(LimitError::contradicts_align());
                }
                _ => return Err(LimitError::not_supported(field, letter.algorithm())),
            }
        }
        let is_missing = |field: LimitField| letter.has(field) && !self.is_set(field);
        if is_missing(LimitField::Count) {
            return Err(LimitError::missing(LimitField::Count));
        }
        if is_missing(LimitField::Window) && self.count != Some(0) {
            return Err(LimitError::missing(LimitField::Window));
        }
        Ok(())
    }

    /// Returns whether the field has a value.
    pub(crate) fn is_set(&self, field: LimitField) -> bool {
        match field {
            LimitField::Count => self.count.is_some(),
            LimitField::Window => self.window.is_some(),
            LimitField::Burst => self.burst.is_some(),
            LimitField::Align => self.align.is_some(),
            LimitField::Tz => self.tz.is_some(),
            LimitField::Ttl => self.ttl.is_some(),
            LimitField::Unit => self.unit.is_some(),
            LimitField::Name => self.name.is_some(),
        }
    }
}

impl Limit {
    /// Fields from which [`LimitSpec::build`] builds the same limit, except for its rule.
    #[must_use]
    pub fn spec(&self) -> LimitSpec {
        let name = self.is_named().then(|| self.name().to_owned());
        LimitSpec { name, ..self.unnamed_spec() }
    }

    /// Same as [`spec`](Self::spec), without the name.
    pub(crate) fn unnamed_spec(&self) -> LimitSpec {
        let letter = self.letter();
        let calendar = self.calendar();
        LimitSpec {
            algorithm: Some(letter.algorithm()),
            count: letter.has(LimitField::Count).then(|| self.count()),
            window: letter.has(LimitField::Window).then(|| self.window()),
            burst: letter.has(LimitField::Burst).then(|| self.capacity()),
            align: calendar.map(Calendar::unit),
            tz: calendar.map(|calendar| calendar.zone().to_owned()),
            ttl: self.ttl(),
            unit: Some(self.unit()).filter(|unit| !unit.is_requests()).cloned(),
            name: None,
        }
    }
}

/// Hashes the numbers only: specifications that differ in nothing else are rare.
impl Hash for LimitSpec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let micros = |length: Option<Duration>| length.map_or(0, |length| length.as_micros());
        state.write_u64(self.count.unwrap_or_default());
        state.write_u64(self.burst.unwrap_or_default());
        state.write_u128(micros(self.window) ^ micros(self.ttl));
    }
}
