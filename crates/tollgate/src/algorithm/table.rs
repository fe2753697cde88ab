//! The table of algorithms: names, key letters, and the fields that a limit of each has. Every parser, printer and
//! encoding of limits uses it.

use std::fmt;

/// Algorithm of a limit.
///
/// Stores and front ends must support every algorithm, so a `match` over it lists them all.
///
/// ```
/// use tollgate::{Algorithm, Limit, Quota};
///
/// let limit = Limit::sliding_counter(Quota::per_day(1_000_000))?;
/// assert_eq!(limit.algorithm(), Algorithm::SlidingCounter);
/// assert_eq!(limit.algorithm().to_string(), "sliding_counter");
/// assert_eq!(Algorithm::from_name("sliding_counter"), Some(Algorithm::SlidingCounter));
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Refuses every request.
    Block,
    /// A burst that refills at a constant rate: at most burst + rate × t in any interval t.
    TokenBucket,
    /// A log of accepted takes: at most the count in any window, exactly.
    SlidingWindow,
    /// Two counters and a weighted estimate, for large counts.
    SlidingCounter,
    /// One counter per window: at most the count per window, twice that across a boundary.
    FixedWindow,
    /// Slots that are released or expire: at most the count in flight.
    Concurrency,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 6] = [
        Self::Block,
        Self::TokenBucket,
        Self::SlidingWindow,
        Self::SlidingCounter,
        Self::FixedWindow,
        Self::Concurrency,
    ];

    /// Names that a policy or a request can contain: all but `block`, which is written as a limit of 0.
    pub const NAMES: &'static [&'static str] = &[
        Self::TokenBucket.as_str(),
        Self::SlidingWindow.as_str(),
        Self::SlidingCounter.as_str(),
        Self::FixedWindow.as_str(),
        Self::Concurrency.as_str(),
    ];

    /// Name of the algorithm in policies and APIs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::TokenBucket => "token_bucket",
            Self::SlidingWindow => "sliding_window",
            Self::SlidingCounter => "sliding_counter",
            Self::FixedWindow => "fixed_window",
            Self::Concurrency => "concurrency",
        }
    }

    /// Returns the algorithm with one of [`NAMES`](Self::NAMES).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let is_named = |algorithm: &Self| algorithm.as_str() == name;
        Self::ALL.into_iter().find(is_named).filter(|_| Self::NAMES.contains(&name))
    }

    /// Returns whether a limit of this algorithm can have the field. Every limit can have a name, and every limit that
    /// counts amounts a unit.
    #[must_use]
    pub fn accepts(self, field: LimitField) -> bool {
        let mut letters = Letter::ALL.into_iter().filter(|letter| letter.algorithm() == self);
        match field {
            LimitField::Name => true,
            LimitField::Unit => self != Self::Block && !self.holds_slots(),
            _ => letters.any(|letter| letter.has(field)),
        }
    }

    /// Returns whether a take holds slots, which a permit releases.
    #[must_use]
    pub const fn holds_slots(self) -> bool {
        match self {
            Self::Concurrency => true,
            Self::Block
            | Self::TokenBucket
            | Self::SlidingWindow
            | Self::SlidingCounter
            | Self::FixedWindow => false,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Field of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitField {
    /// Maximum cost per window, or number of slots.
    Count,
    /// Length of the window.
    Window,
    /// Maximum cost of one take from a full bucket.
    Burst,
    /// Calendar unit of the window.
    Align,
    /// Time zone of the calendar.
    Tz,
    /// Time after which an unreleased slot expires.
    Ttl,
    /// Unit that the limit counts.
    Unit,
    /// Name of the limit.
    Name,
}

impl LimitField {
    /// Name of the field in [`LimitSpec`](crate::LimitSpec).
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Window => "window",
            Self::Burst => "burst",
            Self::Align => "align",
            Self::Tz => "tz",
            Self::Ttl => "ttl",
            Self::Unit => "unit",
            Self::Name => "name",
        }
    }
}

/// First letter of a limit's [identity](crate::Limit::identity): its algorithm. Calendar windows have their own
/// letter, because their states differ from those of other fixed windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the variants of `Algorithm`, with calendar windows apart")]
pub enum Letter {
    Block,
    TokenBucket,
    SlidingWindow,
    SlidingCounter,
    FixedWindow,
    CalendarWindow,
    Concurrency,
}

impl Letter {
    /// All letters.
    pub const ALL: [Self; 7] = [
        Self::Block,
        Self::TokenBucket,
        Self::SlidingWindow,
        Self::SlidingCounter,
        Self::FixedWindow,
        Self::CalendarWindow,
        Self::Concurrency,
    ];

    /// The letter as ASCII. It is part of stored data and never changes.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Block => b'b',
            Self::TokenBucket => b't',
            Self::SlidingWindow => b'w',
            Self::SlidingCounter => b'c',
            Self::FixedWindow => b'f',
            Self::CalendarWindow => b'a',
            Self::Concurrency => b'n',
        }
    }

    /// Returns the letter with this ASCII code.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|letter| letter.byte() == byte)
    }

    /// Algorithm of the limit.
    #[must_use]
    pub const fn algorithm(self) -> Algorithm {
        match self {
            Self::Block => Algorithm::Block,
            Self::TokenBucket => Algorithm::TokenBucket,
            Self::SlidingWindow => Algorithm::SlidingWindow,
            Self::SlidingCounter => Algorithm::SlidingCounter,
            Self::FixedWindow | Self::CalendarWindow => Algorithm::FixedWindow,
            Self::Concurrency => Algorithm::Concurrency,
        }
    }

    /// Fields of the limit, without the unit and the name. Stored limits contain their values in this order, so that it never
    /// changes.
    #[must_use]
    pub const fn fields(self) -> &'static [LimitField] {
        use LimitField::{Align, Burst, Count, Ttl, Tz, Window};
        match self {
            Self::Block => &[],
            Self::TokenBucket => &[Count, Window, Burst],
            Self::SlidingWindow | Self::SlidingCounter | Self::FixedWindow => &[Count, Window],
            Self::CalendarWindow => &[Count, Align, Tz],
            Self::Concurrency => &[Count, Ttl],
        }
    }

    /// How a lease of the limit is kept within it.
    pub(crate) const fn lease_rule(self) -> LeaseRule {
        match self {
            Self::Block | Self::Concurrency => LeaseRule::Never,
            Self::TokenBucket => LeaseRule::Refill,
            Self::SlidingWindow => LeaseRule::Log,
            Self::FixedWindow | Self::CalendarWindow => LeaseRule::Window,
            Self::SlidingCounter => LeaseRule::FadingWindow,
        }
    }

    /// Returns whether the limit has the field.
    #[must_use]
    pub fn has(self, field: LimitField) -> bool {
        self.fields().contains(&field)
    }
}

/// How a lease, which is spent later than it is debited, is kept within a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseRule {
    /// The limit is not leased.
    Never,
    /// What refills until the lease ends cannot be leased.
    Refill,
    /// The store counts every take for the time of a lease longer.
    Log,
    /// The lease ends with the window, which ends at the reset.
    Window,
    /// The lease ends with the window, which ends one window before the reset.
    FadingWindow,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_all_algorithms_with_fields() {
        let has_fields = |algorithm: &Algorithm| algorithm.accepts(LimitField::Count);
        let names = Algorithm::ALL.into_iter().filter(has_fields).map(Algorithm::as_str);
        assert_eq!(names.collect::<Vec<_>>(), Algorithm::NAMES);
        assert_eq!(Algorithm::from_name("block"), None);
    }

    #[test]
    fn every_algorithm_has_a_letter_and_letters_differ() {
        for algorithm in Algorithm::ALL {
            let has_letter = Letter::ALL.iter().any(|letter| letter.algorithm() == algorithm);
            assert!(has_letter, "{algorithm}");
            assert_eq!(algorithm.holds_slots(), algorithm.accepts(LimitField::Ttl), "{algorithm}");
        }
        for letter in Letter::ALL {
            assert_eq!(Letter::from_byte(letter.byte()), Some(letter));
        }
    }
}
