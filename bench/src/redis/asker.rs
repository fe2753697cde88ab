//! A caller, whichever way it asks.

use super::ours::Ours;
use super::plain::{Cell, Multiplexed, Pool};
use super::task::Task;
use super::way::Way;
use crate::Outcome;

/// What a decision was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) is_allowed: bool,
    /// What the key may still have.
    pub(super) remaining: u64,
}

/// A clone is another caller of the same process.
#[derive(Clone)]
pub(super) enum Asker {
    Ours(Ours),
    Multiplexed(Multiplexed),
    Pool(Pool),
    Cell(Cell),
}

impl Asker {
    pub(super) async fn connect(task: &Task) -> Outcome<Self> {
        Ok(match task.way {
            Way::Tollgate | Way::Remembering => Self::Ours(Ours::connect(task).await?),
            Way::Multiplexed => Self::Multiplexed(Multiplexed::connect(task).await?),
            Way::Pool => Self::Pool(Pool::connect(task).await?),
            Way::Cell => Self::Cell(Cell::connect(task).await?),
        })
    }

    pub(super) async fn ask(&mut self, key: &str) -> Outcome<Answer> {
        match self {
            Self::Ours(ours) => ours.ask(key).await,
            Self::Multiplexed(multiplexed) => multiplexed.ask(key).await,
            Self::Pool(pool) => pool.ask(key).await,
            Self::Cell(cell) => cell.ask(key).await,
        }
    }
}
