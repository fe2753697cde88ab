//! Rate limit response headers.

use std::fmt::{self, Write};

use super::policy_name::{PolicyName, enforced};
use super::provider_headers;
use crate::decision::{Decision, Status};
use crate::time::{Timestamp, rounding};

/// Maximum integer of a structured field (RFC 9651): fifteen digits.
const MAX_FIELD_INTEGER: u64 = 999_999_999_999_999;

/// Style of the rate limit response headers, which report the remaining quota to clients.
///
/// Clients support different styles, so styles can be combined; only [`XUnix`](Self::XUnix) and
/// [`XDelta`](Self::XDelta) use the same header names and exclude each other.
///
/// Except in [`Provider`](Self::Provider), all figures are those of the [deciding](Decision::deciding) limit. The limit shown for a token bucket is its
/// burst, so that the remaining amount never exceeds it. A node's share in degraded mode is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeaderStyle {
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`; the reset is a Unix time in seconds by the store's clock.
    XUnix,
    /// The same headers; the reset is in seconds from now.
    XDelta,
    /// `RateLimit-Limit`, `-Remaining` and `-Reset` (seconds from now) of the sixth IETF draft. Integers are
    /// clamped to fifteen digits (999 999 999 999 999).
    Draft6,
    /// `RateLimit-Policy` with every enforced limit and `RateLimit` with the deciding one: the structured
    /// fields of the eleventh IETF draft. Integers are clamped to fifteen digits.
    Draft11,
    /// `X-RateLimit-Limit-Requests`, `-Remaining-Requests` and `-Reset-Requests` (from now, such as `6m0s`), as LLM
    /// providers send them, and the same for `Tokens`. Of several limits of a unit, the one with the least remaining, then
    /// with the longest reset; a concurrency limit only if the unit has no other. Limits of other units are not shown.
    Provider,
}

/// Value of a header. Integers are unformatted, so that the caller can format them without allocation.
///
/// ```
/// use tollgate::FieldValue;
///
/// assert_eq!(FieldValue::Number(7).to_string(), "7");
/// assert_eq!(FieldValue::Text("\"60s\";r=7;t=5".into()).to_string(), "\"60s\";r=7;t=5");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValue {
    /// A bare integer.
    Number(u64),
    /// Any other value, in printable ASCII.
    Text(String),
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl HeaderStyle {
    /// All styles.
    pub const ALL: [Self; 5] =
        [Self::XUnix, Self::XDelta, Self::Draft6, Self::Draft11, Self::Provider];

    /// Name of the style in settings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::XUnix => "x-unix",
            Self::XDelta => "x-delta",
            Self::Draft6 => "draft6",
            Self::Draft11 => "draft11",
            Self::Provider => "provider",
        }
    }

    /// Returns the style with this name; `None` if the name is unknown.
    ///
    /// ```
    /// use tollgate::HeaderStyle;
    ///
    /// assert_eq!(HeaderStyle::named("x-unix"), Some(HeaderStyle::XUnix));
    /// assert_eq!(HeaderStyle::named("unknown"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|style| style.as_str() == name)
    }

    /// Header names in lower case, in output order, for example for `Access-Control-Expose-Headers`.
    ///
    /// ```
    /// use tollgate::HeaderStyle;
    ///
    /// assert_eq!(HeaderStyle::Draft11.fields(), ["ratelimit-policy", "ratelimit"]);
    /// ```
    #[must_use]
    pub const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::XUnix | Self::XDelta => {
                &["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]
            }
            Self::Draft6 => &["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"],
            Self::Draft11 => &["ratelimit-policy", "ratelimit"],
            Self::Provider => &provider_headers::NAMES,
        }
    }

    /// Calls `put` with each header name and value; not at all if no limit applies. Names are those of
    /// [`fields`](Self::fields) in this order; [`Provider`](Self::Provider) omits units without a limit. Only
    /// [`Draft11`](Self::Draft11) and `Provider` allocate.
    ///
    /// ```
    /// use tollgate::{HeaderStyle, Limit, LocalLimiter, Quota};
    ///
    /// let limiter = LocalLimiter::new(Limit::fixed_window(Quota::per_minute(10))?);
    /// let decision = limiter.take("c1");
    /// let headers = |style: HeaderStyle| {
    ///     let mut fields = Vec::new();
    ///     style.write(&decision, |name, value| fields.push(format!("{name}: {value}")));
    ///     fields
    /// };
    /// assert_eq!(
    ///     headers(HeaderStyle::XDelta),
    ///     ["x-ratelimit-limit: 10", "x-ratelimit-remaining: 9", "x-ratelimit-reset: 60"]
    /// );
    /// assert_eq!(
    ///     headers(HeaderStyle::Draft11),
    ///     ["ratelimit-policy: \"60s\";q=10;w=60", "ratelimit: \"60s\";r=9;t=60"]
    /// );
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    pub fn write(self, decision: &Decision<'_>, mut put: impl FnMut(&'static str, FieldValue)) {
        let Some(deciding) = decision.deciding() else { return };
        if let Some(numbers) = self.numbers(decision) {
            for (name, number) in self.fields().iter().zip(numbers) {
                put(name, FieldValue::Number(number));
            }
            return;
        }
        let statuses = decision.statuses();
        if self == Self::Provider {
            return provider_headers::write(statuses, put);
        }
        put("ratelimit-policy", FieldValue::Text(policies(statuses)));
        put("ratelimit", FieldValue::Text(service_limit(statuses, deciding)));
    }

    /// Returns the values of the [fields](Self::fields) of a style whose values are numbers: limit, remaining, reset.
    /// `None` for [`Draft11`](Self::Draft11) and [`Provider`](Self::Provider), and if no limit applies.
    ///
    /// ```
    /// use tollgate::{HeaderStyle, Limit, LocalLimiter, Quota};
    ///
    /// let limiter = LocalLimiter::new(Limit::fixed_window(Quota::per_minute(10))?);
    /// assert_eq!(HeaderStyle::XDelta.numbers(&limiter.take("c1")), Some([10, 9, 60]));
    /// assert_eq!(HeaderStyle::Draft11.numbers(&limiter.take("c1")), None);
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn numbers(self, decision: &Decision<'_>) -> Option<[u64; 3]> {
        self.status_numbers(decision.deciding()?, decision.at())
    }

    /// Returns the same as [`numbers`](Self::numbers) for a decision at time `at` with this deciding limit.
    ///
    /// ```
    /// use tollgate::{HeaderStyle, Limit, LocalLimiter, Quota};
    ///
    /// let limiter = LocalLimiter::new(Limit::fixed_window(Quota::per_minute(10))?);
    /// let decision = limiter.take("c1");
    /// let deciding = decision.deciding().ok_or("no limit")?;
    /// let style = HeaderStyle::XDelta;
    /// assert_eq!(style.status_numbers(deciding, decision.at()), style.numbers(&decision));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn status_numbers(self, deciding: &Status<'_>, at: Timestamp) -> Option<[u64; 3]> {
        let figures = |reset| [deciding.limit().capacity(), deciding.remaining(), reset];
        let delta = || rounding::seconds(deciding.reset_after());
        match self {
            Self::XUnix => Some(figures(rounding::unix_seconds(at + deciding.reset_after()))),
            Self::XDelta => Some(figures(delta())),
            Self::Draft6 => Some(figures(delta()).map(clamp_integer)),
            Self::Draft11 | Self::Provider => None,
        }
    }
}

/// Formats every enforced limit as `"name";q=capacity;w=seconds`. A limit without a window has no `w`, and one in another
/// unit than `requests` has `qu="unit"`. The name of a unit needs no escaping.
fn policies(statuses: &[Status<'_>]) -> String {
    let mut list = String::new();
    for status in enforced(statuses) {
        if !list.is_empty() {
            list.push(',');
        }
        let (name, limit) = (PolicyName::new(statuses, status), status.limit());
        // Writing to a string cannot fail.
        let _ = write!(list, "\"{name}\";q={}", clamp_integer(limit.capacity()));
        if !limit.unit().is_requests() {
            let _ = write!(list, ";qu=\"{}\"", limit.unit());
        }
        if !limit.window().is_zero() {
            let _ = write!(list, ";w={}", rounding::seconds(limit.window()));
        }
    }
    list
}

fn service_limit(statuses: &[Status<'_>], deciding: &Status<'_>) -> String {
    let name = PolicyName::new(statuses, deciding);
    let remaining = clamp_integer(deciding.remaining());
    let reset = clamp_integer(rounding::seconds(deciding.reset_after()));
    format!("\"{name}\";r={remaining};t={reset}")
}

/// Clamps to the maximum of a structured field; counts go up to 2^53 − 1, which has sixteen digits.
fn clamp_integer(number: u64) -> u64 {
    number.min(MAX_FIELD_INTEGER)
}
