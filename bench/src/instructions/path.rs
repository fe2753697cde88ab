//! The guarded paths.

use std::fmt;

use crate::Outcome;

/// A path whose instructions are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardedPath {
    /// `LocalLimiter::check` of one key.
    LocalCheck,
    /// `LocalLimiter::take` of 10 000 keys of 36 bytes.
    LocalTake,
    /// `Limiter::check` with a rule of two limits, on the memory store.
    PolicyPlan,
    /// The Tower layer with one limit and response headers, in front of an axum route.
    TowerLayer,
    /// `RedisStore::take` of a limit without leases.
    RedisTake,
    /// `RedisStore::take` from a lease.
    LeaseTake,
    /// `POST /check` of `tollgate serve`.
    HttpCheck,
    /// `CL.THROTTLE` of `tollgate serve`, in pipelines of 16.
    RespThrottle,
}

impl GuardedPath {
    /// All paths, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::LocalCheck,
        Self::LocalTake,
        Self::PolicyPlan,
        Self::TowerLayer,
        Self::RedisTake,
        Self::LeaseTake,
        Self::HttpCheck,
        Self::RespThrottle,
    ];

    /// The name in the baseline and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LocalCheck => "local_check",
            Self::LocalTake => "local_take",
            Self::PolicyPlan => "policy_plan",
            Self::TowerLayer => "tower_layer",
            Self::RedisTake => "redis_take",
            Self::LeaseTake => "lease_take",
            Self::HttpCheck => "http_check",
            Self::RespThrottle => "resp_throttle",
        }
    }

    /// Returns the path with this name.
    ///
    /// # Errors
    /// There is none.
    pub fn parse(name: &str) -> Outcome<Self> {
        let path = Self::ALL.into_iter().find(|path| path.name() == name);
        path.ok_or_else(|| format!("unknown path {name}").into())
    }

    /// The numbers of decisions of the two runs. The shorter one has used every key, so that the difference has only
    /// known keys. A server needs many: its work that depends on time is then small in comparison.
    #[must_use]
    pub const fn decisions(self) -> [u32; 2] {
        match self {
            Self::LocalCheck | Self::LocalTake | Self::PolicyPlan => [20_000, 60_000],
            Self::TowerLayer => [10_000, 20_000],
            Self::RedisTake | Self::HttpCheck => [2_000, 12_000],
            Self::LeaseTake => [20_000, 120_000],
            Self::RespThrottle => [16_000, 96_000],
        }
    }
}

impl GuardedPath {
    /// Whether some work depends on time and not on decisions, such as the renewal of leases and the checks of a connection.
    /// On a slow machine, more of it runs during the same decisions.
    #[must_use]
    pub const fn depends_on_time(self) -> bool {
        match self {
            Self::LocalCheck | Self::LocalTake | Self::PolicyPlan | Self::TowerLayer => false,
            Self::RedisTake | Self::LeaseTake | Self::HttpCheck | Self::RespThrottle => true,
        }
    }
}

impl fmt::Display for GuardedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for path in GuardedPath::ALL {
            assert_eq!(GuardedPath::parse(path.name()).unwrap(), path);
        }
        assert_eq!(GuardedPath::parse("other").unwrap_err().to_string(), "unknown path other");
    }
}
