//! Storage identity of a limit: the text by which stores keep the states of different limits apart.

use std::fmt;

use crate::algorithm::Parameters;
use crate::naming::is_name;

/// Algorithm of a limit.
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
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Parsed storage identity: a letter for the algorithm, then `rule/name`.
#[derive(Debug)]
pub(crate) struct Identity<'a> {
    pub(crate) letter: u8,
    pub(crate) algorithm: Algorithm,
    pub(crate) rule: &'a str,
    pub(crate) name: &'a str,
}

/// Returns the first letter of an identity. Calendar windows have their own letter because their states
/// differ from those of other fixed windows.
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
    /// Parses the output of [`Limit::identity`](crate::Limit::identity). Returns `None` if it is invalid.
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
        // Unnamed limits with equal windows are numbered: `60s`, `60s#2`.
        let (base, nth) = name.split_once('#').unwrap_or((name, "2"));
        let is_number = nth.bytes().all(|byte| byte.is_ascii_digit()) && !nth.is_empty();
        let is_valid = is_name(rule) && is_name(base) && is_number;
        is_valid.then_some(Self { letter, algorithm, rule, name })
    }
}
