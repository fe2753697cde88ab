//! The ways to ask Redis for a decision.

use crate::Outcome;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// tollgate, which asks for every decision.
    Tollgate,
    /// tollgate as it is by default: it remembers who was refused.
    Remembering,
    /// A script call each, all over one connection.
    Multiplexed,
    /// A script call each, over a connection that nobody else uses meanwhile.
    Pool,
    /// A command of the module redis-cell each, all over one connection.
    Cell,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Tollgate, Self::Remembering, Self::Multiplexed, Self::Pool, Self::Cell];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tollgate => "tollgate",
            Self::Remembering => "remembering",
            Self::Multiplexed => "multiplexed",
            Self::Pool => "pool",
            Self::Cell => "cell",
        }
    }

    /// Its name in the tables.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Tollgate => "tollgate",
            Self::Remembering => "tollgate, remembering refusals",
            Self::Multiplexed => "EVALSHA each, one connection",
            Self::Pool => "EVALSHA each, a pool",
            Self::Cell => "redis-cell, one connection",
        }
    }

    /// The way of this name.
    ///
    /// # Errors
    /// No way has it.
    pub fn named(name: &str) -> Outcome<Self> {
        let way = Self::ALL.into_iter().find(|way| way.name() == name);
        way.ok_or_else(|| format!("no way of asking is called {name}").into())
    }
}
