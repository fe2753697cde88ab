//! The methods to get a decision from Redis.

use crate::Outcome;

/// A method to get a decision from Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// tollgate without the refusal cache: Redis makes every decision.
    Tollgate,
    /// tollgate with its default refusal cache.
    TollgateCached,
    /// tollgate with its defaults and leases.
    TollgateLeased,
    /// One script call per decision, over one shared connection.
    Multiplexed,
    /// One script call per decision, over a pool of connections with one call in flight each.
    Pool,
    /// One redis-cell command per decision, over one shared connection.
    Cell,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 6] = [
        Self::Tollgate,
        Self::TollgateCached,
        Self::TollgateLeased,
        Self::Multiplexed,
        Self::Pool,
        Self::Cell,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tollgate => "tollgate",
            Self::TollgateCached => "remembering",
            Self::TollgateLeased => "leasing",
            Self::Multiplexed => "multiplexed",
            Self::Pool => "pool",
            Self::Cell => "cell",
        }
    }

    /// The name in the tables.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Tollgate => "tollgate",
            Self::TollgateCached => "tollgate, refusal cache",
            Self::TollgateLeased => "tollgate, leases",
            Self::Multiplexed => "EVALSHA per decision, one connection",
            Self::Pool => "EVALSHA per decision, pool",
            Self::Cell => "redis-cell, one connection",
        }
    }

    /// Parses a name.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn parse(name: &str) -> Outcome<Self> {
        let method = Self::ALL.into_iter().find(|method| method.name() == name);
        method.ok_or_else(|| format!("unknown --way {name}").into())
    }
}
