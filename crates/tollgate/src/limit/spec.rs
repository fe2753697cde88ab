//! The shape of a limit: the numbers it was made of, enough to tell it from others and to make it anew.

use std::time::Duration;

use crate::algorithm::{CalendarUnit, Parameters};
use crate::error::QuotaError;
use crate::fields::{Fields, put_longs, put_text};
use crate::limit::Limit;
use crate::limit::identity::Identity;
use crate::quota::Quota;
use crate::time::saturating_micros;

/// What a limit was made of, without its rule and name. Times are microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum LimitSpec {
    Block,
    TokenBucket { count: u64, period: u64, burst: u64 },
    SlidingWindow { count: u64, period: u64 },
    SlidingCounter { count: u64, period: u64 },
    FixedWindow { count: u64, period: u64 },
    CalendarWindow { count: u64, unit: CalendarUnit, zone: Box<str> },
    Concurrency { count: u64, ttl: u64 },
}

impl LimitSpec {
    pub(crate) fn of(limit: &Limit) -> Self {
        let (count, period) = (limit.count(), saturating_micros(limit.window()));
        match limit.parameters() {
            Parameters::Block => Self::Block,
            Parameters::TokenBucket(numbers) => {
                Self::TokenBucket { count, period, burst: numbers.burst() }
            }
            Parameters::SlidingWindow(_) => Self::SlidingWindow { count, period },
            Parameters::SlidingCounter(_) => Self::SlidingCounter { count, period },
            Parameters::FixedWindow(_) => Self::FixedWindow { count, period },
            Parameters::AlignedWindow(numbers) => Self::CalendarWindow {
                count,
                unit: numbers.calendar().unit(),
                zone: numbers.calendar().zone().into(),
            },
            Parameters::Concurrency(numbers) => {
                Self::Concurrency { count, ttl: saturating_micros(numbers.ttl()) }
            }
        }
    }

    /// A limit of this shape, of no rule and with no name of its own.
    pub(crate) fn build(&self) -> Result<Limit, QuotaError> {
        let quota = |count, period| Quota::try_new(count, Duration::from_micros(period));
        match *self {
            Self::Block => Ok(Limit::block()),
            Self::TokenBucket { count, period, burst } => {
                Limit::token_bucket(quota(count, period)?.try_burst(burst)?)
            }
            Self::SlidingWindow { count, period } => Limit::sliding_window(quota(count, period)?),
            Self::SlidingCounter { count, period } => Limit::sliding_counter(quota(count, period)?),
            Self::FixedWindow { count, period } => Limit::fixed_window(quota(count, period)?),
            Self::CalendarWindow { count, unit, ref zone } => {
                Limit::calendar_window(count, unit, zone)
            }
            Self::Concurrency { count, ttl } => {
                Limit::concurrency(count, Duration::from_micros(ttl))
            }
        }
    }

    /// Writes it down, without the letter of its kind.
    pub(crate) fn save(&self, out: &mut Vec<u8>) -> Option<()> {
        match *self {
            Self::Block => {}
            Self::TokenBucket { count, period, burst } => put_longs(out, [count, period, burst]),
            Self::SlidingWindow { count, period }
            | Self::SlidingCounter { count, period }
            | Self::FixedWindow { count, period } => put_longs(out, [count, period]),
            Self::CalendarWindow { count, unit, ref zone } => {
                put_longs(out, [count]);
                out.push(number(unit));
                put_text(out, zone)?;
            }
            Self::Concurrency { count, ttl } => put_longs(out, [count, ttl]),
        }
        Some(())
    }

    /// A shape of the kind that scopes with this letter have.
    pub(crate) fn load(letter: u8, fields: &mut Fields<'_>) -> Option<Self> {
        if letter == b'b' {
            return Some(Self::Block);
        }
        let count = fields.long()?;
        Some(match letter {
            b't' => Self::TokenBucket { count, period: fields.long()?, burst: fields.long()? },
            b'w' => Self::SlidingWindow { count, period: fields.long()? },
            b'c' => Self::SlidingCounter { count, period: fields.long()? },
            b'f' => Self::FixedWindow { count, period: fields.long()? },
            b'a' => {
                let told = fields.byte()?;
                let unit = CalendarUnit::ALL.into_iter().find(|unit| number(*unit) == told)?;
                Self::CalendarWindow { count, unit, zone: fields.text()?.into() }
            }
            b'n' => Self::Concurrency { count, ttl: fields.long()? },
            _ => return None,
        })
    }
}

/// What a sketch begins with.
const UNNAMED: u8 = 1;
const NAMED: u8 = 2;

impl Limit {
    /// What it was made of, in a few bytes, for stores that list limits which are in no policy.
    ///
    /// ```
    /// use tollgate::{Limit, Quota};
    ///
    /// let limit = Limit::token_bucket(Quota::per_minute(10).burst(20))?;
    /// assert_eq!(Limit::from_spec_bytes(&limit.identity(), &limit.spec_bytes()), Some(limit));
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    #[must_use]
    pub fn spec_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Only a text of 4 GiB would not fit, and time zones are short.
        self.write_spec(&mut out).map_or_else(Vec::new, |()| out)
    }

    /// The limit that wrote this [scope](Self::identity) and this sketch; none if no limit did.
    #[must_use]
    pub fn from_spec_bytes(scope: &str, sketch: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(sketch);
        let tag = fields.byte()?;
        let limit = Self::read_spec(&Identity::parse(scope)?, tag, &mut fields)?;
        fields.is_empty().then_some(limit)
    }

    pub(crate) fn write_spec(&self, out: &mut Vec<u8>) -> Option<()> {
        out.push(if self.is_named() { NAMED } else { UNNAMED });
        LimitSpec::of(self).save(out)
    }

    pub(crate) fn read_spec(
        scope: &Identity<'_>,
        tag: u8,
        fields: &mut Fields<'_>,
    ) -> Option<Self> {
        let limit =
            LimitSpec::load(scope.letter, fields)?.build().ok()?.in_rule(scope.rule).ok()?;
        match tag {
            NAMED => limit.named(scope.name).ok(),
            UNNAMED => Some(limit.called(scope.name.to_owned())),
            _ => None,
        }
    }
}

/// What a unit is written as.
const fn number(unit: CalendarUnit) -> u8 {
    match unit {
        CalendarUnit::Second => 0,
        CalendarUnit::Minute => 1,
        CalendarUnit::Hour => 2,
        CalendarUnit::Day => 3,
        CalendarUnit::Week => 4,
        CalendarUnit::Month => 5,
        CalendarUnit::Year => 6,
    }
}
