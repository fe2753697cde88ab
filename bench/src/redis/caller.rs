//! A caller of Redis, for each method.

use super::method::Method;
use super::peer_callers::{Cell, Multiplexed, Pool};
use super::task::Task;
use super::tollgate_caller::TollgateCaller;
use crate::Outcome;

/// The result of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) is_allowed: bool,
    /// Remaining quota of the key.
    pub(super) remaining: u64,
}

/// A caller. Clones share the connections.
#[derive(Clone)]
pub(super) enum Caller {
    Tollgate(TollgateCaller),
    Multiplexed(Multiplexed),
    Pool(Pool),
    Cell(Cell),
}

impl Caller {
    pub(super) async fn connect(task: &Task) -> Outcome<Self> {
        Ok(match task.method {
            Method::Tollgate | Method::TollgateCached | Method::TollgateLeased => {
                Self::Tollgate(TollgateCaller::connect(task).await?)
            }
            Method::Multiplexed => Self::Multiplexed(Multiplexed::connect(task).await?),
            Method::Pool => Self::Pool(Pool::connect(task).await?),
            Method::Cell => Self::Cell(Cell::connect(task).await?),
        })
    }

    pub(super) async fn decide(&mut self, key: &str) -> Outcome<Reply> {
        match self {
            Self::Tollgate(tollgate) => tollgate.decide(key).await,
            Self::Multiplexed(multiplexed) => multiplexed.decide(key).await,
            Self::Pool(pool) => pool.decide(key).await,
            Self::Cell(cell) => cell.decide(key).await,
        }
    }
}
