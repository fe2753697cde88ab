//! Named limiters: quotas of others that this program's outbound calls must keep to.

use std::time::Duration;

use crate::error::{QuotaError, QuotaErrorKind};
use crate::facts::MAX_FACT_LENGTH;
use crate::limit::identity::Algorithm;
use crate::limit::{INLINE_RULE, Limit};
use crate::naming::valid_name;
use crate::plan::{Key, Plan, Take};
use crate::query::Inline;
use crate::quota::Quota;
use crate::subject::Subject;
use crate::time::MAX_EXACT;

/// What becomes of a caller who finds no room.
///
/// ```
/// use tollgate::policy::AcquireMode;
///
/// assert_eq!(AcquireMode::default(), AcquireMode::Blocking { longest_wait: None });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AcquireMode {
    /// It waits until there is room.
    Blocking {
        /// But not longer than this; none waits as long as it takes.
        longest_wait: Option<Duration>,
    },
    /// It is refused at once.
    Immediate,
}

impl Default for AcquireMode {
    fn default() -> Self {
        Self::Blocking { longest_wait: None }
    }
}

/// A limiter by name: the key it counts, its limits, and what becomes of callers who find no room.
///
/// It counts where a request with a key and limits of its own does, so a program that asks the service
/// `{"key":"igdb:api","limits":[…]}` and one that holds this limiter over the same Redis share one quota.
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
    /// One limit for this key. Until it is [named](Self::named) it is called as its key, and callers wait.
    ///
    /// # Errors
    /// An empty key or one of more than 1024 bytes, or a concurrency limit: nobody would give its slots back.
    pub fn new(key: &str, limit: Limit) -> Result<Self, QuotaError> {
        Self::with_limits(key, vec![limit])
    }

    /// Several limits for this key: all have room, or none is charged.
    ///
    /// # Errors
    /// As [`new`](Self::new); no limit, more than 16, or two of the same name.
    pub fn with_limits(key: &str, limits: Vec<Limit>) -> Result<Self, QuotaError> {
        if !(1..=MAX_FACT_LENGTH).contains(&key.len()) {
            let reason = "the key of a limiter must be 1 to 1024 bytes";
            return Err(QuotaError::fixed(QuotaErrorKind::Name, reason));
        }
        if limits.iter().any(|limit| limit.algorithm() == Algorithm::Concurrency) {
            return Err(QuotaError::fixed(QuotaErrorKind::Limits, NO_SLOTS));
        }
        let (subject, limits) = Inline::new("", key, limits, 1)?.into_counters();
        let mode = AcquireMode::default();
        Ok(Self { name: key.into(), key: key.into(), subject, limits: limits.into(), mode })
    }

    /// The same limiter, called by this name.
    ///
    /// # Errors
    /// A name that does not match `[A-Za-z0-9._-]{1,64}`.
    pub fn named(self, name: &str) -> Result<Self, QuotaError> {
        Ok(Self { name: valid_name("limiter", name)?, ..self })
    }

    /// The same limiter, whose callers wait, but not longer than this.
    #[must_use]
    pub fn longest_wait(self, longest: Duration) -> Self {
        self.with_mode(AcquireMode::Blocking { longest_wait: Some(longest) })
    }

    /// The same limiter, whose callers are refused at once.
    #[must_use]
    pub fn immediate(self) -> Self {
        self.with_mode(AcquireMode::Immediate)
    }

    /// The same limiter in this mode.
    #[must_use]
    pub fn with_mode(self, mode: AcquireMode) -> Self {
        Self { mode, ..self }
    }

    /// The quota of IGDB: 4 in any second.
    #[must_use]
    pub fn igdb() -> Self {
        const QUOTA: Quota = Quota::per_second(4);
        Self::known("igdb", "igdb:api", QUOTA)
    }

    /// The quota of `MusicBrainz`: 1 in any second.
    #[must_use]
    pub fn musicbrainz() -> Self {
        const QUOTA: Quota = Quota::per_second(1);
        Self::known("musicbrainz", "musicbrainz:api", QUOTA)
    }

    /// The quota of TMDB: 40 in any ten seconds.
    #[must_use]
    pub fn tmdb() -> Self {
        const QUOTA: Quota = Quota::new(40, Duration::from_secs(10));
        Self::known("tmdb", "tmdb:api", QUOTA)
    }

    /// The quota of Spotify: 180 in any minute.
    #[must_use]
    pub fn spotify() -> Self {
        const QUOTA: Quota = Quota::per_minute(180);
        Self::known("spotify", "spotify:api", QUOTA)
    }

    /// Those that are known to everybody.
    ///
    /// ```
    /// use tollgate::policy::NamedLimits;
    ///
    /// let names = NamedLimits::presets().map(|ready| ready.name().to_owned());
    /// assert_eq!(names, ["igdb", "musicbrainz", "tmdb", "spotify"]);
    /// ```
    #[must_use]
    pub fn presets() -> [Self; 4] {
        [Self::igdb(), Self::musicbrainz(), Self::tmdb(), Self::spotify()]
    }

    fn known(name: &str, key: &str, quota: Quota) -> Self {
        // These numbers fit a sliding window; a block is the safe way to be wrong about that.
        let limit = Limit::sliding_window(quota).and_then(|limit| limit.in_rule(INLINE_RULE));
        let limit = limit.unwrap_or_else(|_| Limit::block());
        let (subject, mode) = (Subject::of([key]), AcquireMode::default());
        Self { name: name.into(), key: key.into(), subject, limits: Box::new([limit]), mode }
    }

    /// What programs and people call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it counts under. Limiters of the same key share their counts.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Its limits: all have room, or none is charged.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// What becomes of callers who find no room.
    #[must_use]
    pub const fn mode(&self) -> AcquireMode {
        self.mode
    }

    /// Its counters, one a limit, in the order of the limits.
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

    /// The plan of one call that costs so much. No limit holds 2^53, so that is what larger costs become.
    #[must_use]
    pub fn plan(&self, cost: u64) -> Plan<'_> {
        let cost = cost.min(MAX_EXACT);
        Plan::of_distinct(self.counters().map(|counter| Take::new(counter, cost)))
    }
}

/// Why a limiter has no concurrency limits.
pub(super) const NO_SLOTS: &str =
    "a limiter has rates only, since nobody would give the slots of concurrency back";

#[cfg(test)]
mod tests {
    use super::{Duration, Limit, NamedLimits, Quota, QuotaErrorKind};
    use crate::query::{Inline, ResolvedQuery};

    fn limits() -> Vec<Limit> {
        let limit = |count| Limit::sliding_window(Quota::new(count, Duration::from_secs(1)));
        vec![
            limit(4).unwrap(),
            Limit::token_bucket(Quota::per_hour(100)).unwrap(),
            limit(9).unwrap(),
        ]
    }

    #[test]
    fn it_counts_where_a_request_with_its_own_limits_does() {
        for key in ["igdb:api", "a/b{c}%", "é"] {
            let named = NamedLimits::with_limits(key, limits()).unwrap();
            let asked = Inline::new("", key, limits(), 3).unwrap();
            let applied = ResolvedQuery::Inline(&asked);
            let plan = applied.plan().unwrap();
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
    fn the_ready_ones_are_as_if_built() {
        for ready in NamedLimits::presets() {
            let [limit] = ready.limits() else { panic!("one limit") };
            let quota = Quota::new(limit.count(), limit.window());
            let built = NamedLimits::new(ready.key(), Limit::sliding_window(quota).unwrap());
            assert_eq!(built.unwrap().named(ready.name()).unwrap(), ready);
        }
        let numbers = NamedLimits::presets().map(|ready| {
            (
                ready.key().to_owned(),
                ready.limits()[0].count(),
                ready.limits()[0].window().as_secs(),
            )
        });
        let expected = [
            ("igdb:api".to_owned(), 4, 1),
            ("musicbrainz:api".to_owned(), 1, 1),
            ("tmdb:api".to_owned(), 40, 10),
            ("spotify:api".to_owned(), 180, 60),
        ];
        assert_eq!(numbers, expected);
    }

    #[test]
    fn what_makes_no_limiter_is_refused() {
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
