//! Scopes: under what stores keep the states of one limit apart from those of others, and the names
//! of the algorithms that are part of it.

use std::fmt;

use crate::algorithm::Parameters;
use crate::naming::is_name;

/// How a limit counts.
///
/// ```
/// use tollgate::{Algorithm, Limit, Quota};
///
/// let limit = Limit::sliding_counter(Quota::per_day(1_000_000))?;
/// assert_eq!(limit.algorithm(), Algorithm::SlidingCounter);
/// assert_eq!(limit.algorithm().to_string(), "sliding_counter");
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Refuses everything.
    Block,
    /// A burst, refilled evenly: at most burst + rate × t in any interval t.
    TokenBucket,
    /// A log of accepted takes: at most the count in any window, exactly.
    SlidingWindow,
    /// Two counters and a weighted estimate, for large counts.
    SlidingCounter,
    /// One counter that starts over: at most the count per window.
    FixedWindow,
    /// Slots that are given back, or return by themselves: at most the count in flight.
    Concurrency,
}

impl Algorithm {
    /// Its name in policies and on the wire.
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
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A scope in its parts: a letter for the algorithm, then `rule/name`.
#[derive(Debug)]
pub(crate) struct Identity<'a> {
    pub(crate) letter: u8,
    pub(crate) algorithm: Algorithm,
    pub(crate) rule: &'a str,
    pub(crate) name: &'a str,
}

/// The letter that scopes begin with. Windows of the calendar have one of their own: their states are
/// not those of other fixed windows.
pub(crate) const fn letter(parameters: &Parameters) -> char {
    match parameters {
        Parameters::Block => 'b',
        Parameters::TokenBucket(_) => 't',
        Parameters::SlidingWindow(_) => 'w',
        Parameters::SlidingCounter(_) => 'c',
        Parameters::FixedWindow(_) => 'f',
        Parameters::AlignedWindow(_) => 'a',
        Parameters::Concurrency(_) => 'n',
    }
}

impl<'a> Identity<'a> {
    /// The parts of what [`Limit::identity`](crate::Limit::identity) wrote; none if no limit did.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let letter = *text.as_bytes().first()?;
        let algorithm = match letter {
            b'b' => Algorithm::Block,
            b't' => Algorithm::TokenBucket,
            b'w' => Algorithm::SlidingWindow,
            b'c' => Algorithm::SlidingCounter,
            b'f' | b'a' => Algorithm::FixedWindow,
            b'n' => Algorithm::Concurrency,
            _ => return None,
        };
        let (rule, name) = text.get(1..)?.split_once('/')?;
        // Of several that were not named the later ones are numbered.
        let (base, nth) = name.split_once('#').unwrap_or((name, "2"));
        let is_number = nth.bytes().all(|byte| byte.is_ascii_digit()) && !nth.is_empty();
        let is_scope = is_name(rule) && is_name(base) && is_number;
        is_scope.then_some(Self { letter, algorithm, rule, name })
    }
}
