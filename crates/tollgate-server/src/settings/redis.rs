//! How a Redis is spoken to, and how often this node says there that it is up.

use std::ops::RangeInclusive;
use std::time::Duration;

use tollgate::Distributed;
use tollgate_redis::{Address, DEFAULT_PREFIX, DEFAULT_TIMEOUT, RedisStore, Scripting};

use super::SettingsError;
use super::checks::within;
use super::file::SettingsFile;
use crate::cli::ServeArgs;

const LONGEST_TIMEOUT_MS: u64 = 60_000;
const HEARTBEAT_MS: RangeInclusive<u64> = 10..=3_600_000;
const LONGEST_LIFETIME_MS: u64 = 86_400_000;
const MOST_FAILURES: u64 = 1_000_000;
const LONGEST_OPEN_MS: u64 = 3_600_000;
const PROBE_MS: RangeInclusive<u64> = 10..=600_000;
const DEFAULT_FAILURES: u32 = 5;
const DEFAULT_OPEN: Duration = Duration::from_secs(30);
const DEFAULT_PROBE: Duration = Duration::from_secs(1);
const DEFAULT_HEARTBEAT: Duration = Duration::from_secs(10);
const DEFAULT_LIFETIME: Duration = Duration::from_secs(30);

/// What matters only if counters live in Redis.
#[derive(Debug)]
pub(crate) struct RedisSettings {
    pub(crate) timeout: Duration,
    pub(crate) prefix: String,
    pub(crate) scripting: Scripting,
    /// How often this node says that it is up.
    pub(crate) heartbeat: Duration,
    /// For how long it counts as up after it has said so.
    pub(crate) node_lifetime: Duration,
    /// After how many failures in a row Redis is no longer asked.
    pub(crate) breaker_failures: u32,
    /// For how long, unless a probe finds it back sooner.
    pub(crate) breaker_open: Duration,
    /// How often a lost Redis is probed.
    pub(crate) probe: Duration,
    /// How much Redis has to say at most, whatever rules say.
    pub(crate) distributed: Distributed,
}

impl RedisSettings {
    pub(super) fn of(args: &ServeArgs, file: &SettingsFile) -> Result<Self, SettingsError> {
        let millis = |setting, given, range| {
            within(setting, given, range).map(|given| given.map(Duration::from_millis))
        };
        let timeout = args.redis_timeout_ms.or(file.redis_timeout_ms);
        let timeout = millis("--redis-timeout-ms", timeout, 1..=LONGEST_TIMEOUT_MS)?;
        let heartbeat = args.heartbeat_ms.or(file.heartbeat_ms);
        let heartbeat = millis("--heartbeat-ms", heartbeat, HEARTBEAT_MS)?;
        let lifetime = args.node_lifetime_ms.or(file.node_lifetime_ms);
        let lifetime = millis("--node-lifetime-ms", lifetime, 1..=LONGEST_LIFETIME_MS)?;
        let heartbeat = heartbeat.unwrap_or(DEFAULT_HEARTBEAT);
        let failures = args.breaker_failures.or(file.breaker_failures);
        let failures = within("--breaker-failures", failures, 1..=MOST_FAILURES)?;
        let failures = failures.and_then(|failures| u32::try_from(failures).ok());
        let open = args.breaker_open_ms.or(file.breaker_open_ms);
        let open = millis("--breaker-open-ms", open, 1..=LONGEST_OPEN_MS)?;
        let probe = millis("--probe-ms", args.probe_ms.or(file.probe_ms), PROBE_MS)?;
        let distributed = args.distributed.or(file.distributed);
        let prefix = args.redis_prefix.as_ref().or(file.redis_prefix.as_ref());
        Ok(Self {
            timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
            prefix: prefix.map_or(Ok(DEFAULT_PREFIX.to_owned()), |prefix| valid_prefix(prefix))?,
            scripting: args.scripting.or(file.scripting).map_or(Scripting::default(), Into::into),
            heartbeat,
            node_lifetime: outlasting(heartbeat, lifetime.unwrap_or(DEFAULT_LIFETIME))?,
            breaker_failures: failures.unwrap_or(DEFAULT_FAILURES),
            breaker_open: open.unwrap_or(DEFAULT_OPEN),
            probe: probe.unwrap_or(DEFAULT_PROBE),
            distributed: distributed.map_or(Distributed::default(), Into::into),
        })
    }
}

/// A node must not count as down between two of its heartbeats.
fn outlasting(heartbeat: Duration, lifetime: Duration) -> Result<Duration, SettingsError> {
    if lifetime > heartbeat {
        return Ok(lifetime);
    }
    let (lifetime, heartbeat) = (lifetime.as_millis(), heartbeat.as_millis());
    let reason = format!("{lifetime} must be more than the {heartbeat} of --heartbeat-ms");
    Err(SettingsError::new("--node-lifetime-ms", reason))
}

fn valid_prefix(prefix: &str) -> Result<String, SettingsError> {
    match RedisStore::builder(Address::local()).prefix(prefix) {
        Ok(_) => Ok(prefix.to_owned()),
        Err(error) => Err(SettingsError::new("--redis-prefix", error)),
    }
}
