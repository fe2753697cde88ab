//! Named limiters: quotas of third-party APIs that the outbound calls of a program must respect.

use std::time::Duration;

use crate::limit::{INLINE_RULE, Limit};
use crate::naming::valid_name;
use crate::plan::{Key, Plan, Take};
use crate::query::Inline;
use crate::quota::{Quota, QuotaError, QuotaErrorKind};
use crate::request::MAX_FACT_LENGTH;
use crate::subject::Subject;
use crate::time::MAX_EXACT;

/// Whether a caller waits or is refused when the quota is used up.
///
/// ```
/// use tollgate::policy::AcquireMode;
///
/// assert_eq!(AcquireMode::default(), AcquireMode::Blocking { longest_wait: None });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AcquireMode {
    /// The caller waits until quota is available.
    Blocking {
        /// The maximum wait; `None` waits without a limit.
        longest_wait: Option<Duration>,
    },
    /// The caller is refused immediately.
    Immediate,
}

impl Default for AcquireMode {
    fn default() -> Self {
        Self::Blocking { longest_wait: None }
    }
}

/// A named limiter for outbound calls: a key, its limits, and whether callers wait or are refused.
///
/// It uses the same counters as a request with inline limits: a program that sends
/// `{"key":"igdb:api","limits":[…]}` to the service and a program with this limiter on the same Redis share
/// one quota.
///
/// ```
/// use std::time::Duration;
/// use tollgate::policy::NamedLimits;
/// use tollgate::{Limit, Quota};
///
/// let limit = Limit::sliding_window(Quota::per_second(4))?;
/// let games = NamedLimits::new("igdb:api", limit)?
///     .named("igdb")?
///     .longest_wait(Duration::from_secs(30));
/// assert_eq!((games.name(), games.key()), ("igdb", "igdb:api"));
/// assert_eq!(games.limits()[0].count(), 4);
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLimits {
    name: Box<str>,
    key: Box<str>,
    subject: Subject,
    limits: Box<[Limit]>,
    mode: AcquireMode,
}

impl NamedLimits {
    /// Creates a limiter with one limit for `key`. Its name is the key unless [`named`](Self::named) sets
    /// another, and callers wait without a maximum.
    ///
    /// # Errors
    /// An empty key or one of more than 1024 bytes, a concurrency limit (a limiter never releases slots), or a limit
    /// in another unit than `requests`.
    pub fn new(key: &str, limit: Limit) -> Result<Self, QuotaError> {
        Self::with_limits(key, vec![limit])
    }

    /// Creates a limiter with several limits for `key`. A call takes from all limits or from none.
    ///
    /// # Errors
    /// As [`new`](Self::new); no limit, more than 16 limits, or two limits with the same name.
    pub fn with_limits(key: &str, limits: Vec<Limit>) -> Result<Self, QuotaError> {
        if !(1..=MAX_FACT_LENGTH).contains(&key.len()) {
            let reason = "the key of a limiter must have 1 to 1024 bytes";
            return Err(QuotaError::fixed(QuotaErrorKind::Name, reason));
        }
        if limits.iter().any(|limit| limit.algorithm().holds_slots()) {
            return Err(QuotaError::fixed(QuotaErrorKind::Limits, NO_SLOTS));
        }
        if limits.iter().any(|limit| !limit.unit().is_requests()) {
            return Err(QuotaError::fixed(QuotaErrorKind::Limits, REQUESTS_ONLY));
        }
        let (subject, limits) = Inline::new("", key, limits, 1)?.into_counters();
        let mode = AcquireMode::default();
        Ok(Self { name: key.into(), key: key.into(), subject, limits, mode })
    }

    /// Sets the name.
    ///
    /// # Errors
    /// A name that does not match `[A-Za-z0-9._-]{1,64}`.
    pub fn named(self, name: &str) -> Result<Self, QuotaError> {
        Ok(Self { name: valid_name("limiter", name)?, ..self })
    }

    /// Makes callers wait at most `max_wait`.
    #[must_use]
    pub fn longest_wait(self, max_wait: Duration) -> Self {
        self.with_mode(AcquireMode::Blocking { longest_wait: Some(max_wait) })
    }

    /// Makes the limiter refuse callers immediately instead of waiting.
    #[must_use]
    pub fn immediate(self) -> Self {
        self.with_mode(AcquireMode::Immediate)
    }

    /// Sets whether callers wait or are refused.
    #[must_use]
    pub fn with_mode(self, mode: AcquireMode) -> Self {
        Self { mode, ..self }
    }

    /// Returns the IGDB limiter: 4 requests in any second, key `igdb:api`.
    #[must_use]
    pub fn igdb() -> Self {
        const QUOTA: Quota = Quota::per_second(4);
        Self::preset("igdb", "igdb:api", QUOTA)
    }

    /// Returns the `MusicBrainz` limiter: 1 request in any second, key `musicbrainz:api`.
    #[must_use]
    pub fn musicbrainz() -> Self {
        const QUOTA: Quota = Quota::per_second(1);
        Self::preset("musicbrainz", "musicbrainz:api", QUOTA)
    }

    /// Returns the TMDB limiter: 40 requests in any 10 seconds, key `tmdb:api`.
    #[must_use]
    pub fn tmdb() -> Self {
        const QUOTA: Quota = Quota::new(40, Duration::from_secs(10));
        Self::preset("tmdb", "tmdb:api", QUOTA)
    }

    /// Returns the Spotify limiter: 180 requests in any minute, key `spotify:api`.
    #[must_use]
    pub fn spotify() -> Self {
        const QUOTA: Quota = Quota::per_minute(180);
        Self::preset("spotify", "spotify:api", QUOTA)
    }

    /// Returns the built-in limiters of well-known APIs.
    ///
    /// ```
    /// use tollgate::policy::NamedLimits;
    ///
    /// let names = NamedLimits::presets().map(|preset| preset.name().to_owned());
    /// assert_eq!(names, ["igdb", "musicbrainz", "tmdb", "spotify"]);
    /// ```
    #[must_use]
    pub fn presets() -> [Self; 4] {
        [Self::igdb(), Self::musicbrainz(), Self::tmdb(), Self::spotify()]
    }

    fn preset(name: &str, key: &str, quota: Quota) -> Self {
        // The preset quotas fit a sliding window. If that ever changed, a block would be the safe fallback.
        let limit = Limit::sliding_window(quota).and_then(|limit| limit.in_rule(INLINE_RULE));
        let limit = limit.unwrap_or_else(|_| Limit::block());
        let (subject, mode) = (Subject::of([key]), AcquireMode::default());
        Self { name: name.into(), key: key.into(), subject, limits: Box::new([limit]), mode }
    }

    /// Returns the name, by which programs look the limiter up.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the key. Limiters with the same key and limits share their counters.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the limits. A call takes from all of them or from none.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// Returns whether callers wait or are refused.
    #[must_use]
    pub const fn mode(&self) -> AcquireMode {
        self.mode
    }

    /// Returns the counters, one per limit, in the order of the limits.
    ///
    /// ```
    /// use tollgate::policy::NamedLimits;
    ///
    /// let igdb = NamedLimits::igdb();
    /// let keys: Vec<String> = igdb.counters().map(|key| key.to_string()).collect();
    /// assert_eq!(keys, ["{:igdb%3Aapi}:inline/1s"]);
    /// ```
    pub fn counters(&self) -> impl Iterator<Item = Key<'_>> {
        self.limits.iter().map(|limit| Key::new(&self.subject, limit))
    }

    /// Returns the plan for one call with this cost. A cost above 2^53 becomes 2^53, which no limit can hold.
    #[must_use]
    pub fn plan(&self, cost: u64) -> Plan<'_> {
        let cost = cost.min(MAX_EXACT);
        Plan::of_distinct(self.counters().map(|counter| Take::new(counter, cost)))
    }
}

/// The error for a concurrency limit in a limiter.
pub(super) const NO_SLOTS: &str =
    "a limiter cannot have a concurrency limit, because it never releases slots; use a rate";

/// The error for a limit in another unit in a limiter.
pub(super) const REQUESTS_ONLY: &str = "a limiter counts requests only; omit the unit";

#[cfg(test)]
mod tests {
    use super::{Duration, Limit, NamedLimits, Quota, QuotaErrorKind};
    use crate::query::Inline;

    fn limits() -> Vec<Limit> {
        let limit = |count| Limit::sliding_window(Quota::new(count, Duration::from_secs(1)));
        vec![
            limit(4).unwrap(),
            Limit::token_bucket(Quota::per_hour(100)).unwrap(),
            limit(9).unwrap(),
        ]
    }

    #[test]
    fn shares_counters_with_inline_limits_of_the_same_key() {
        for key in ["igdb:api", "a/b{c}%", "é"] {
            let named = NamedLimits::with_limits(key, limits()).unwrap();
            let inline = Inline::new("", key, limits(), 3).unwrap();
            let plan = inline.plan();
            let texts = |plan: &crate::Plan<'_>| -> Vec<String> {
                let text = |take: &crate::Take<'_>| {
                    format!("{} {} {}", take.key(), take.key().limit().identity(), take.cost())
                };
                plan.takes().iter().map(text).collect()
            };
            assert_eq!(texts(&named.plan(3)), texts(&plan), "{key}");
            assert_eq!(named.plan(3), plan, "{key}");
        }
    }

    #[test]
    fn presets_equal_limiters_built_by_hand() {
        for preset in NamedLimits::presets() {
            let [limit] = preset.limits() else { panic!("one limit") };
            let quota = Quota::new(limit.count(), limit.window());
            let built = NamedLimits::new(preset.key(), Limit::sliding_window(quota).unwrap());
            assert_eq!(built.unwrap().named(preset.name()).unwrap(), preset);
        }
        let quotas = NamedLimits::presets().map(|preset| {
            (
                preset.key().to_owned(),
                preset.limits()[0].count(),
                preset.limits()[0].window().as_secs(),
            )
        });
        let expected = [
            ("igdb:api".to_owned(), 4, 1),
            ("musicbrainz:api".to_owned(), 1, 1),
            ("tmdb:api".to_owned(), 40, 10),
            ("spotify:api".to_owned(), 180, 60),
        ];
        assert_eq!(quotas, expected);
    }

    #[test]
    fn rejects_invalid_keys_names_and_limits() {
        let limit = || limits().remove(0);
        let kind = |built: Result<NamedLimits, crate::QuotaError>| built.unwrap_err().kind();
        assert_eq!(kind(NamedLimits::new("", limit())), QuotaErrorKind::Name);
        assert_eq!(kind(NamedLimits::new(&"k".repeat(1025), limit())), QuotaErrorKind::Name);
        assert_eq!(kind(NamedLimits::with_limits("k", vec![])), QuotaErrorKind::Limits);
        assert_eq!(kind(NamedLimits::igdb().named("a b")), QuotaErrorKind::Name);
        let slots = Limit::concurrency(1, Duration::from_secs(1)).unwrap();
        assert_eq!(kind(NamedLimits::new("k", slots)), QuotaErrorKind::Limits);
    }
}
