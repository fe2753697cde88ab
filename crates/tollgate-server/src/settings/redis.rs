//! Settings of the Redis store, the breaker and the node reports.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::Duration;

use tollgate::{Distributed, StoreError, StoreErrorKind};
use tollgate_redis::{Address, DEFAULT_PREFIX, DEFAULT_TIMEOUT, RedisStore, Scripting};

use super::checks::within;
use super::file::SettingsFile;
use crate::error::SettingsError;
use crate::settings::args::ServeArgs;

const MAX_TIMEOUT_MS: u64 = 60_000;
/// At most 1 second, because the other nodes count a node that joins at their next report, which must be within 2 s.
const REPORT_RANGE_MS: RangeInclusive<u64> = 10..=1000;
const MAX_LIFETIME_MS: u64 = 86_400_000;
const MAX_FAILURES: u64 = 1_000_000;
const MAX_OPEN_MS: u64 = 3_600_000;
const MAX_NODES: u64 = 1_000_000;
const PROBE_RANGE_MS: RangeInclusive<u64> = 10..=600_000;
const DEFAULT_FAILURES: u32 = 5;
const DEFAULT_OPEN: Duration = Duration::from_secs(30);
const DEFAULT_PROBE: Duration = Duration::from_secs(1);
const MIN_LIFETIME_REPORTS: u32 = 3;
const DEFAULT_REPORT: Duration = Duration::from_secs(1);
const DEFAULT_LIFETIME: Duration = Duration::from_secs(30);

/// Settings that only apply to a Redis store.
#[derive(Debug)]
pub(crate) struct RedisSettings {
    pub(crate) timeout: Duration,
    pub(crate) prefix: String,
    pub(crate) scripting: Scripting,
    /// Interval of the reports of this node.
    pub(crate) report: Duration,
    /// Time after the last report during which a node counts as up.
    pub(crate) node_lifetime: Duration,
    /// Consecutive failures that open the breaker.
    pub(crate) breaker_failures: u32,
    /// Time that the breaker stays open, unless a probe succeeds earlier.
    pub(crate) breaker_open: Duration,
    /// Interval of probes while the breaker is open.
    pub(crate) probe: Duration,
    /// Upper bound on the role of Redis, overriding the rules.
    pub(crate) distributed: Distributed,
    /// Whether the server exits if Redis is unavailable at the start.
    pub(crate) is_required: bool,
    /// Number of nodes after a start without Redis, if the data directory has no count.
    pub(crate) expected_nodes: Option<NonZeroU32>,
}

impl RedisSettings {
    pub(super) fn of(args: &ServeArgs, file: &SettingsFile) -> Result<Self, SettingsError> {
        let millis = |setting, number, range| {
            within(setting, number, range).map(|number| number.map(Duration::from_millis))
        };
        let timeout = args.redis_timeout_ms.or(file.redis_timeout_ms);
        let timeout = millis("--redis-timeout-ms", timeout, 1..=MAX_TIMEOUT_MS)?;
        let report = args.report_ms.or(file.report_ms);
        let report = millis("--report-ms", report, REPORT_RANGE_MS)?.unwrap_or(DEFAULT_REPORT);
        let lifetime = args.node_lifetime_ms.or(file.node_lifetime_ms);
        let lifetime = millis("--node-lifetime-ms", lifetime, 1..=MAX_LIFETIME_MS)?;
        let failures = args.breaker_failures.or(file.breaker_failures);
        let failures = within("--breaker-failures", failures, 1..=MAX_FAILURES)?;
        let failures = failures.and_then(|failures| u32::try_from(failures).ok());
        let open = args.breaker_open_ms.or(file.breaker_open_ms);
        let open = millis("--breaker-open-ms", open, 1..=MAX_OPEN_MS)?;
        let probe = millis("--probe-ms", args.probe_ms.or(file.probe_ms), PROBE_RANGE_MS)?;
        let distributed = args.distributed.or(file.distributed);
        let expected = args.expected_nodes.or(file.expected_nodes);
        let expected = within("--expected-nodes", expected, 1..=MAX_NODES)?;
        let expected = expected.and_then(|nodes| NonZeroU32::new(u32::try_from(nodes).ok()?));
        let prefix = args.redis_prefix.as_ref().or(file.redis_prefix.as_ref());
        Ok(Self {
            timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
            prefix: prefix.map_or(Ok(DEFAULT_PREFIX.to_owned()), |prefix| valid_prefix(prefix))?,
            scripting: args.scripting.or(file.scripting).map_or(Scripting::default(), Into::into),
            report,
            node_lifetime: check_lifetime(report, lifetime.unwrap_or(DEFAULT_LIFETIME))?,
            breaker_failures: failures.unwrap_or(DEFAULT_FAILURES),
            breaker_open: open.unwrap_or(DEFAULT_OPEN),
            probe: probe.unwrap_or(DEFAULT_PROBE),
            distributed: distributed.map_or(Distributed::default(), Into::into),
            is_required: args.require_redis.or(file.require_redis).unwrap_or(false),
            expected_nodes: expected,
        })
    }

    /// Returns whether the server may start in degraded mode after this error: Redis is unavailable, but it does not
    /// reject this node.
    pub(crate) fn may_start_after(&self, error: &StoreError) -> bool {
        let is_rejected = error.kind() == StoreErrorKind::Misconfigured;
        !self.is_required && error.is_transient() && !is_rejected
    }
}

/// Rejects a lifetime with which a node would count as down after one late report.
fn check_lifetime(report: Duration, lifetime: Duration) -> Result<Duration, SettingsError> {
    if lifetime >= report * MIN_LIFETIME_REPORTS {
        return Ok(lifetime);
    }
    let (lifetime, report) = (lifetime.as_millis(), report.as_millis());
    let reason =
        format!("{lifetime} must be at least {MIN_LIFETIME_REPORTS} times --report-ms ({report})");
    Err(SettingsError::new("--node-lifetime-ms", reason))
}

fn valid_prefix(prefix: &str) -> Result<String, SettingsError> {
    match RedisStore::builder(Address::local()).prefix(prefix) {
        Ok(_) => Ok(prefix.to_owned()),
        Err(error) => Err(SettingsError::new("--redis-prefix", error)),
    }
}
