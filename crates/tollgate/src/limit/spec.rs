//! Specification of a limit: the constructor arguments, with a binary encoding to rebuild the limit.

use std::time::Duration;

use crate::algorithm::{CalendarUnit, Parameters};
use crate::fields::{Fields, put_longs, put_text};
use crate::limit::Limit;
use crate::limit::identity::Identity;
use crate::quota::{Quota, QuotaError};
use crate::time::saturating_micros;

/// Constructor arguments of a limit, without rule and name. Times are in microseconds.
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
            Parameters::TokenBucket(bucket) => {
                Self::TokenBucket { count, period, burst: bucket.burst() }
            }
            Parameters::SlidingWindow(_) => Self::SlidingWindow { count, period },
            Parameters::SlidingCounter(_) => Self::SlidingCounter { count, period },
            Parameters::FixedWindow(_) => Self::FixedWindow { count, period },
            Parameters::AlignedWindow(window) => Self::CalendarWindow {
                count,
                unit: window.calendar().unit(),
                zone: window.calendar().zone().into(),
            },
            Parameters::Concurrency(slots) => {
                Self::Concurrency { count, ttl: saturating_micros(slots.ttl()) }
            }
        }
    }

    /// Builds an unnamed limit that belongs to no rule.
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

    /// Encodes the specification without the letter of its algorithm.
    pub(crate) fn save(&self, out: &mut Vec<u8>) -> Option<()> {
        match *self {
            Self::Block => {}
            Self::TokenBucket { count, period, burst } => put_longs(out, [count, period, burst]),
            Self::SlidingWindow { count, period }
            | Self::SlidingCounter { count, period }
            | Self::FixedWindow { count, period } => put_longs(out, [count, period]),
            Self::CalendarWindow { count, unit, ref zone } => {
                put_longs(out, [count]);
                out.push(unit_code(unit));
                put_text(out, zone)?;
            }
            Self::Concurrency { count, ttl } => put_longs(out, [count, ttl]),
        }
        Some(())
    }

    /// Decodes the specification of a limit whose identity starts with `letter`.
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
                let code = fields.byte()?;
                let unit = CalendarUnit::ALL.into_iter().find(|unit| unit_code(*unit) == code)?;
                Self::CalendarWindow { count, unit, zone: fields.text()?.into() }
            }
            b'n' => Self::Concurrency { count, ttl: fields.long()? },
            _ => return None,
        })
    }
}

// First byte of an encoded limit.
const UNNAMED: u8 = 1;
const NAMED: u8 = 2;

impl Limit {
    /// Encodes the limit's parameters, so that a store can list inline limits, which are in no policy.
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
        // Fails only for a text above 4 GiB, and time zone names are short.
        self.write_spec(&mut out).map_or_else(Vec::new, |()| out)
    }

    /// Rebuilds a limit from its [identity](Self::identity) and [`spec_bytes`](Self::spec_bytes). Returns
    /// `None` if they are invalid.
    #[must_use]
    pub fn from_spec_bytes(identity: &str, bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(bytes);
        let tag = fields.byte()?;
        let limit = Self::read_spec(&Identity::parse(identity)?, tag, &mut fields)?;
        fields.is_empty().then_some(limit)
    }

    pub(crate) fn write_spec(&self, out: &mut Vec<u8>) -> Option<()> {
        out.push(if self.is_named() { NAMED } else { UNNAMED });
        LimitSpec::of(self).save(out)
    }

    pub(crate) fn read_spec(
        identity: &Identity<'_>,
        tag: u8,
        fields: &mut Fields<'_>,
    ) -> Option<Self> {
        let limit =
            LimitSpec::load(identity.letter, fields)?.build().ok()?.in_rule(identity.rule).ok()?;
        match tag {
            NAMED => limit.named(identity.name).ok(),
            UNNAMED => Some(limit.with_default_name(identity.name.to_owned())),
            _ => None,
        }
    }
}

/// Byte that encodes a calendar unit.
const fn unit_code(unit: CalendarUnit) -> u8 {
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
