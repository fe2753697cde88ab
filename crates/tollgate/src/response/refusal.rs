//! Response to a refused request, shared by all front ends.

use std::fmt::{self, Write};

use super::policy_name::{PolicyName, enforced};
use crate::decision::{Decision, Status};
use crate::plan::OnStoreLoss;
use crate::request::PathError;
use crate::time::rounding;

const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

/// The type of problems that the status describes.
const NO_TYPE: &str = "about:blank";

/// HTTP response to a refused request: status, `Retry-After` and body.
///
/// The status is 429 if a limit is exceeded, and 503 if the store is unavailable and the rule then
/// [denies](OnStoreLoss::Deny), or if the request is shed because too many wait for the store. A request with a path that
/// no rule could match is refused with 414 or 400.
///
/// ```
/// use tollgate::{Limit, LocalLimiter, Quota, Refusal, RefusalStyle};
///
/// let limiter = LocalLimiter::new(Limit::token_bucket(Quota::per_minute(1))?);
/// assert!(Refusal::of(&limiter.take("c1")).is_none());
///
/// let decision = limiter.take("c1");
/// let refusal = Refusal::of(&decision).ok_or("not refused")?;
/// assert_eq!((refusal.status(), refusal.retry_after_seconds()), (429, Some(60)));
/// assert_eq!(
///     refusal.body(RefusalStyle::Simple),
///     r#"{"error":"rate_limit_exceeded","message":"Too many requests. Please wait 60 seconds.","retry_after":60}"#
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Refusal<'a> {
    statuses: &'a [Status<'a>],
    retry_after: Option<u64>,
    reason: Reason,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// A limit is exceeded.
    Exceeded,
    /// The store is unavailable.
    Unavailable,
    /// Too many requests wait for the store.
    Overloaded,
    /// The path cannot be matched.
    Path(PathError),
}

/// Format of a refusal's body.
///
/// ```
/// use tollgate::RefusalStyle;
///
/// assert_eq!(RefusalStyle::default().content_type(), "application/json");
/// assert_eq!(RefusalStyle::Problem.content_type(), "application/problem+json");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum RefusalStyle {
    /// Error code, message and seconds to wait.
    #[default]
    Simple,
    /// Problem details (RFC 9457), including the names of the exceeded limits.
    Problem,
}

impl RefusalStyle {
    /// All styles.
    pub const ALL: [Self; 2] = [Self::Simple, Self::Problem];

    /// Name of the style in settings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Problem => "problem",
        }
    }

    /// Value for `Content-Type`.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Simple => "application/json",
            Self::Problem => "application/problem+json",
        }
    }
}

impl<'a> Refusal<'a> {
    /// Creates the refusal of a decision; `None` if the decision allows.
    #[must_use]
    pub fn of(decision: &'a Decision<'_>) -> Option<Self> {
        if decision.is_allowed() {
            return None;
        }
        let is_unavailable = decision.loss() == Some(OnStoreLoss::Deny);
        let wait = decision.retry_after().map(|wait| rounding::seconds(wait).max(1));
        // The store may recover at any time.
        let (retry_after, reason) = match is_unavailable {
            true => (wait.or(Some(1)), Reason::Unavailable),
            false => (wait, Reason::Exceeded),
        };
        Some(Self { statuses: decision.statuses(), retry_after, reason })
    }

    /// Creates the refusal for a request without a decision, because the store is unavailable and has no
    /// fallback.
    ///
    /// ```
    /// use tollgate::Refusal;
    ///
    /// assert_eq!(Refusal::undecided().status(), 503);
    /// assert_eq!(Refusal::undecided().retry_after_seconds(), Some(1));
    /// ```
    #[must_use]
    pub const fn undecided() -> Self {
        Self { statuses: &[], retry_after: Some(1), reason: Reason::Unavailable }
    }

    /// Creates the refusal for a request that is shed, because too many requests of this process wait for the
    /// store ([`StoreErrorKind::Overloaded`](crate::StoreErrorKind::Overloaded)).
    ///
    /// ```
    /// use tollgate::{Refusal, RefusalStyle};
    ///
    /// let refusal = Refusal::overloaded();
    /// assert_eq!((refusal.status(), refusal.retry_after_seconds()), (503, Some(1)));
    /// assert!(refusal.body(RefusalStyle::Simple).contains(r#""reason":"overloaded""#));
    /// ```
    #[must_use]
    pub const fn overloaded() -> Self {
        Self { statuses: &[], retry_after: Some(1), reason: Reason::Overloaded }
    }

    /// Creates the refusal for a request with a path that is too long or invalid. Without its path, the request could
    /// miss its rule.
    ///
    /// ```
    /// use tollgate::{PathError, Refusal, RefusalStyle};
    ///
    /// let refusal = Refusal::of_path(PathError::TooLong);
    /// assert_eq!((refusal.status(), refusal.retry_after_seconds()), (414, None));
    /// assert_eq!(
    ///     refusal.body(RefusalStyle::Simple),
    ///     r#"{"error":"path_too_long","message":"The path is longer than 1024 bytes.","retry_after":null}"#
    /// );
    /// ```
    #[must_use]
    pub const fn of_path(error: PathError) -> Self {
        Self { statuses: &[], retry_after: None, reason: Reason::Path(error) }
    }

    /// HTTP status: 429, or 503 if the store is unavailable or overloaded; 414 or 400 for a path that cannot be matched.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self.reason {
            Reason::Exceeded => 429,
            Reason::Unavailable | Reason::Overloaded => 503,
            Reason::Path(PathError::TooLong) => 414,
            Reason::Path(PathError::Invalid) => 400,
        }
    }

    /// Returns true if no limit was evaluated, because the store is unavailable or
    /// [overloaded](Self::is_overloaded).
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        matches!(self.reason, Reason::Unavailable | Reason::Overloaded)
    }

    /// Returns the error of a path that cannot be matched.
    #[must_use]
    pub const fn path_error(&self) -> Option<PathError> {
        match self.reason {
            Reason::Path(error) => Some(error),
            _ => None,
        }
    }

    /// Returns true if the request is shed, because too many requests wait for the store.
    #[must_use]
    pub const fn is_overloaded(&self) -> bool {
        matches!(self.reason, Reason::Overloaded)
    }

    /// Value for `Retry-After` in seconds, rounded up. At least 1, because a client would retry immediately
    /// after 0 and be refused. `None` if waiting does not help.
    #[must_use]
    pub const fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after
    }

    /// Statuses of the enforced limits that refused, in the plan's order.
    ///
    /// ```
    /// use tollgate::{Limit, LocalLimiter, Quota, Refusal};
    ///
    /// let limiter = LocalLimiter::builder()
    ///     .limit(Limit::token_bucket(Quota::per_minute(1))?)
    ///     .limit(Limit::token_bucket(Quota::per_hour(100))?)
    ///     .build()?;
    /// let _ = limiter.take("c1");
    /// let decision = limiter.take("c1");
    /// let refusal = Refusal::of(&decision).ok_or("not refused")?;
    /// let names: Vec<&str> = refusal.violated().map(|status| status.limit().name()).collect();
    /// assert_eq!(names, ["60s"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn violated(&self) -> impl Iterator<Item = &'a Status<'a>> {
        enforced(self.statuses).filter(|status| !status.verdict().is_allowed())
    }

    /// Returns the body as JSON.
    #[must_use]
    pub fn body(&self, style: RefusalStyle) -> String {
        let mut body = String::with_capacity(256);
        // Writing to a string cannot fail.
        let _ = match style {
            RefusalStyle::Simple => self.write_simple(&mut body),
            RefusalStyle::Problem => self.write_problem(&mut body),
        };
        body
    }

    fn write_simple(&self, body: &mut String) -> fmt::Result {
        let (error, message) = (self.error(), Message(self));
        write!(body, r#"{{"error":"{error}","message":"{message}","#)?;
        self.write_common_fields(body)
    }

    fn write_problem(&self, body: &mut String) -> fmt::Result {
        let (status, detail) = (self.status(), Message(self));
        let (kind, title) = match self.reason {
            Reason::Exceeded => (QUOTA_EXCEEDED, "Quota exceeded"),
            Reason::Unavailable | Reason::Overloaded => (NO_TYPE, "Service Unavailable"),
            Reason::Path(PathError::TooLong) => (NO_TYPE, "URI Too Long"),
            Reason::Path(PathError::Invalid) => (NO_TYPE, "Bad Request"),
        };
        write!(body, r#"{{"type":"{kind}","title":"{title}","#)?;
        write!(body, r#""status":{status},"detail":"{detail}","#)?;
        if self.reason == Reason::Exceeded {
            self.write_violated(body)?;
        }
        self.write_common_fields(body)
    }

    fn write_violated(&self, body: &mut String) -> fmt::Result {
        body.push_str(r#""violated-policies":["#);
        for (nth, status) in self.violated().enumerate() {
            let comma = if nth == 0 { "" } else { "," };
            write!(body, r#"{comma}"{}""#, PolicyName::new(self.statuses, status))?;
        }
        body.push_str("],");
        Ok(())
    }

    /// Writes the last fields, which both styles share.
    fn write_common_fields(&self, body: &mut String) -> fmt::Result {
        match self.retry_after {
            Some(seconds) => write!(body, r#""retry_after":{seconds}"#)?,
            None => body.push_str(r#""retry_after":null"#),
        }
        body.push_str(match self.reason {
            Reason::Exceeded | Reason::Path(_) => "}",
            Reason::Unavailable => r#","allowed":false,"degraded":true}"#,
            Reason::Overloaded => r#","allowed":false,"degraded":false,"reason":"overloaded"}"#,
        });
        Ok(())
    }

    const fn error(&self) -> &'static str {
        match self.reason {
            Reason::Exceeded => "rate_limit_exceeded",
            Reason::Unavailable => "rate_limiter_unavailable",
            Reason::Overloaded => "rate_limiter_overloaded",
            Reason::Path(PathError::TooLong) => "path_too_long",
            Reason::Path(PathError::Invalid) => "path_invalid",
        }
    }
}

/// Human-readable message. Some clients parse it, so the unit is always "seconds", also for 1.
struct Message<'r, 'a>(&'r Refusal<'a>);

impl fmt::Display for Message<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.0.reason {
            Reason::Exceeded => "Too many requests.",
            Reason::Unavailable => "The rate limiter is unavailable.",
            Reason::Overloaded => "The rate limiter is overloaded.",
            Reason::Path(PathError::TooLong) => {
                return f.write_str("The path is longer than 1024 bytes.");
            }
            Reason::Path(PathError::Invalid) => {
                return f.write_str("The path must start with / and have valid percent-escapes.");
            }
        };
        match self.0.retry_after {
            Some(seconds) => write!(f, "{reason} Please wait {seconds} seconds."),
            None => f.write_str("The request exceeds the limit. Waiting does not help."),
        }
    }
}
