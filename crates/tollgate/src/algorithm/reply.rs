//! Verdicts, and the reply of an algorithm to one operation.

use std::time::Duration;

use crate::time::micros_up;

/// Result for one request: allowed, or refused with the time until a retry passes.
///
/// ```
/// use tollgate::{Limit, LocalLimiter, Quota, Verdict};
///
/// let limiter = LocalLimiter::new(Limit::fixed_window(Quota::per_minute(1))?);
/// let _ = limiter.take("k");
/// match limiter.take("k").verdict() {
///     Verdict::Allow => unreachable!("the limit is one per minute"),
///     Verdict::Deny { retry_after } => assert!(retry_after.as_secs() <= 60),
///     Verdict::Never => unreachable!("the cost is within the limit"),
/// }
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The request passes.
    Allow,
    /// The request is refused. After `retry_after` the same request passes unless another request took the
    /// quota; one microsecond earlier it does not.
    Deny {
        /// Time until the same request passes.
        retry_after: Duration,
    },
    /// The cost exceeds the burst, or the limit is a block: waiting does not help.
    Never,
}

impl Verdict {
    /// Returns true for `Allow`.
    #[must_use]
    pub const fn is_allowed(self) -> bool {
        matches!(self, Self::Allow)
    }

    /// Time until the same request passes; `None` for `Allow` and `Never`.
    #[must_use]
    pub const fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Deny { retry_after } => Some(retry_after),
            Self::Allow | Self::Never => None,
        }
    }
}

/// Result of a step: the verdict and the key's figures after the operation. The used count is the
/// limit's capacity minus `remaining`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Reply {
    pub(super) wait: Wait,
    pub(super) remaining: u64,
    pub(super) debt: u64,
    pub(super) reset_after: u64,
}

/// A verdict as one integer: 0 = allow, `u64::MAX` = never, otherwise microseconds until a retry passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait(pub(super) u64);

impl Wait {
    pub(super) const NONE: Self = Self(0);
    pub(super) const FOREVER: Self = Self(u64::MAX);

    #[inline]
    pub(super) const fn verdict(self) -> Verdict {
        match self {
            Self::NONE => Verdict::Allow,
            Self::FOREVER => Verdict::Never,
            Self(micros) => Verdict::Deny { retry_after: Duration::from_micros(micros) },
        }
    }
}

impl Reply {
    /// Reply of a block.
    pub(crate) const NEVER: Self =
        Self { wait: Wait::FOREVER, remaining: 0, debt: 0, reset_after: 0 };

    /// Creates a reply from the verdict (always `Allow` for a refund or a debit), the quota that can be
    /// taken now, and the time until the limit is full again. Times are rounded up to microseconds.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Verdict, algorithm::Reply};
    ///
    /// let verdict = Verdict::Deny { retry_after: Duration::from_nanos(1) };
    /// let reply = Reply::new(verdict, 0, Duration::ZERO);
    /// assert_eq!(reply.verdict().retry_after(), Some(Duration::from_micros(1)));
    /// ```
    pub fn new(verdict: Verdict, remaining: u64, reset_after: Duration) -> Self {
        let wait = match verdict {
            Verdict::Allow => Wait::NONE,
            // A `Deny` must not become `Allow` (0) or `Never` (MAX), whatever its wait.
            Verdict::Deny { retry_after } => {
                Wait(micros_up(retry_after).clamp(1, Wait::FOREVER.0 - 1))
            }
            Verdict::Never => Wait::FOREVER,
        };
        Self { wait, remaining, debt: 0, reset_after: micros_up(reset_after) }
    }

    /// Verdict of the operation.
    #[inline]
    pub const fn verdict(&self) -> Verdict {
        self.wait.verdict()
    }

    /// Returns true if the verdict is `Allow`.
    #[must_use]
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        self.wait.0 == 0
    }

    /// Quota that can be taken now.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Quota used beyond the limit, by settled reservations that cost more than estimated or before the limit was
    /// lowered.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Verdict, algorithm::Reply};
    ///
    /// let reply = Reply::new(Verdict::Allow, 0, Duration::ZERO).with_debt(5);
    /// assert_eq!((reply.remaining(), reply.debt()), (0, 5));
    /// ```
    #[must_use]
    pub const fn debt(&self) -> u64 {
        self.debt
    }

    /// Returns the same reply with a debt.
    pub const fn with_debt(self, debt: u64) -> Self {
        Self { debt, ..self }
    }

    /// Time until the limit is full again.
    #[must_use]
    pub const fn reset_after(&self) -> Duration {
        Duration::from_micros(self.reset_after)
    }

    /// Sort key for refusals: a longer wait is greater, `Never` is the greatest, `Allow` is 0.
    pub(crate) const fn severity(&self) -> u64 {
        self.wait.0
    }

    /// Returns the same figures with another verdict.
    pub(crate) fn with_verdict(self, verdict: Verdict) -> Self {
        Self::new(verdict, self.remaining, self.reset_after()).with_debt(self.debt)
    }

    /// Returns the same reply with `remaining` reduced by `taken`.
    #[cfg(feature = "policy")]
    pub(crate) const fn with_less(self, taken: u64) -> Self {
        Self { remaining: self.remaining.saturating_sub(taken), ..self }
    }

    /// Returns the same reply with `remaining` clamped to `capacity`.
    pub(crate) const fn within(self, capacity: u64) -> Self {
        if self.remaining <= capacity { self } else { Self { remaining: capacity, ..self } }
    }
}
