//! What a refused caller is told, whichever front end tells it.

use std::fmt::{self, Write};

use crate::decision::Decision;
use crate::distribution::OnStoreLoss;
use crate::policy_name::{PolicyName, enforced};
use crate::rounding;
use crate::status::Status;

const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

/// A decision that refuses, as HTTP tells it: a status, a time to come back, a body.
///
/// A limit without room is the caller's to heed: 429. A store that cannot be asked, under a limit that then
/// [denies](OnStoreLoss::Deny), is nobody's fault but ours: 503.
///
/// ```
/// use tollgate::{Limit, LocalLimiter, Quota, Refusal, RefusalStyle};
///
/// let limiter = LocalLimiter::new(Limit::token_bucket(Quota::per_minute(1))?);
/// assert!(Refusal::of(&limiter.take("c1")).is_none());
///
/// let decision = limiter.take("c1");
/// let refusal = Refusal::of(&decision).ok_or("one a minute")?;
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
    is_unavailable: bool,
}

/// How the body of a refusal is written.
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
    /// An error's name, a sentence and the seconds to wait.
    #[default]
    Simple,
    /// Problem details (RFC 9457), which also name the limits that refused.
    Problem,
}

impl RefusalStyle {
    /// What its bodies are, for `Content-Type`.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Simple => "application/json",
            Self::Problem => "application/problem+json",
        }
    }
}

impl<'a> Refusal<'a> {
    /// What to tell the caller of this decision; none if it allows.
    #[must_use]
    pub fn of(decision: &'a Decision<'_>) -> Option<Self> {
        if decision.is_allowed() {
            return None;
        }
        let is_unavailable = decision.loss() == Some(OnStoreLoss::Deny);
        let wait = decision.retry_after().map(|wait| rounding::seconds(wait).max(1));
        // A store may be back at any time.
        let retry_after = if is_unavailable { wait.or(Some(1)) } else { wait };
        Some(Self { statuses: decision.statuses(), retry_after, is_unavailable })
    }

    /// What to tell a caller about whom nothing could be decided, because a store without a fallback could not
    /// be asked.
    ///
    /// ```
    /// use tollgate::Refusal;
    ///
    /// assert_eq!(Refusal::undecided().status(), 503);
    /// assert_eq!(Refusal::undecided().retry_after_seconds(), Some(1));
    /// ```
    #[must_use]
    pub const fn undecided() -> Self {
        Self { statuses: &[], retry_after: Some(1), is_unavailable: true }
    }

    /// The HTTP status: 429, or 503 where nobody could be asked.
    #[must_use]
    pub const fn status(&self) -> u16 {
        if self.is_unavailable { 503 } else { 429 }
    }

    /// Whether it is because nobody could be asked, and not because of what the caller did.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        self.is_unavailable
    }

    /// For `Retry-After`: whole seconds, up, at least one, because a caller told 0 would be back at once and
    /// be refused. None when waiting will not help.
    #[must_use]
    pub const fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after
    }

    /// The limits that refused, in the plan's order. Those that are only watched are not among them.
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
    /// let refusal = Refusal::of(&decision).ok_or("one a minute")?;
    /// let names: Vec<&str> = refusal.violated().map(|status| status.limit().name()).collect();
    /// assert_eq!(names, ["60s"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn violated(&self) -> impl Iterator<Item = &'a Status<'a>> {
        enforced(self.statuses).filter(|status| !status.verdict().is_allowed())
    }

    /// The body, as JSON.
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
        self.write_rest(body)
    }

    fn write_problem(&self, body: &mut String) -> fmt::Result {
        let (status, detail) = (self.status(), Message(self));
        if self.is_unavailable {
            body.push_str(r#"{"type":"about:blank","title":"Service Unavailable","#);
        } else {
            write!(body, r#"{{"type":"{QUOTA_EXCEEDED}","title":"Quota exceeded","#)?;
        }
        write!(body, r#""status":{status},"detail":"{detail}","#)?;
        if !self.is_unavailable {
            self.write_violated(body)?;
        }
        self.write_rest(body)
    }

    fn write_violated(&self, body: &mut String) -> fmt::Result {
        body.push_str(r#""violated-policies":["#);
        for (nth, status) in self.violated().enumerate() {
            let comma = if nth == 0 { "" } else { "," };
            write!(body, r#"{comma}"{}""#, PolicyName::among(self.statuses, status))?;
        }
        body.push_str("],");
        Ok(())
    }

    /// What both styles end with.
    fn write_rest(&self, body: &mut String) -> fmt::Result {
        match self.retry_after {
            Some(seconds) => write!(body, r#""retry_after":{seconds}"#)?,
            None => body.push_str(r#""retry_after":null"#),
        }
        body.push_str(if self.is_unavailable {
            r#","allowed":false,"degraded":true}"#
        } else {
            "}"
        });
        Ok(())
    }

    const fn error(&self) -> &'static str {
        if self.is_unavailable { "rate_limiter_unavailable" } else { "rate_limit_exceeded" }
    }
}

/// The sentence for people. Programs read it too, so it is always of "seconds".
struct Message<'r, 'a>(&'r Refusal<'a>);

impl fmt::Display for Message<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = if self.0.is_unavailable {
            "Requests cannot be counted now."
        } else {
            "Too many requests."
        };
        match self.0.retry_after {
            Some(seconds) => write!(f, "{why} Please wait {seconds} seconds."),
            None => write!(f, "{why} Waiting will not help."),
        }
    }
}
