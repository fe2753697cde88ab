//! What can happen next.

use std::fmt::{Display, Formatter, Result};

/// One event of a run. Nodes are numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Time passes. Any number of other events happens between two ticks.
    Tick,
    /// The store decides a request of any node.
    Take,
    /// Likewise, and the reply is lost.
    TakeWithoutReply,
    /// A node requests a lease, also in the background.
    Request { node: usize },
    /// The store grants the request of a node. It takes `cost` for a request that waits for the reply.
    Grant { node: usize, amount: u8, cost: u8 },
    /// The reply reaches the node, whenever it does.
    Deliver { node: usize },
    /// The node waits no longer: the request or the reply was lost or is late.
    GiveUp { node: usize },
    /// A request that its node has given up reaches the store.
    GrantAbandoned { amount: u8 },
    /// Or is lost.
    LoseAbandoned,
    /// A node admits a request from a lease.
    Spend { node: usize, lease: usize },
    /// A node receives the event of a reset, an override or a refund, or loses its subscription.
    Revoke { node: usize },
    /// The usage of the key is reset.
    Reset,
    /// The process of a node ends, and a new one starts.
    Crash { node: usize },
    /// A node does nothing, for any time.
    Pause { node: usize },
    /// Likewise, and its monotonic clock stands still.
    Suspend { node: usize },
    /// A node continues.
    Continue { node: usize },
    /// The wall clock of a node steps.
    StepClock { node: usize, by: i8 },
    /// The replica receives no more writes.
    BeginLag,
    /// The replica becomes the primary.
    FailOver,
}

impl Display for Action {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match *self {
            Self::Tick => write!(f, "a tick passes"),
            Self::Take => write!(f, "the store admits a request"),
            Self::TakeWithoutReply => write!(f, "the store admits a request, the reply is lost"),
            Self::Request { node } => write!(f, "node {node} requests a lease"),
            Self::Grant { node, amount, cost: 0 } => {
                write!(f, "the store grants {amount} to node {node}")
            }
            Self::Grant { node, amount, cost } => {
                write!(f, "the store admits {cost} for node {node}, grants {amount} with it")
            }
            Self::Deliver { node } => write!(f, "the reply reaches node {node}"),
            Self::GiveUp { node } => write!(f, "node {node} gives up its request"),
            Self::GrantAbandoned { amount } => write!(f, "the store grants {amount} too late"),
            Self::LoseAbandoned => write!(f, "an abandoned request is lost"),
            Self::Spend { node, .. } => write!(f, "node {node} admits a request from a lease"),
            Self::Revoke { node } => write!(f, "node {node} receives an event"),
            Self::Reset => write!(f, "the key is reset"),
            Self::Crash { node } => write!(f, "node {node} crashes and restarts"),
            Self::Pause { node } => write!(f, "node {node} is paused"),
            Self::Suspend { node } => write!(f, "node {node} is suspended"),
            Self::Continue { node } => write!(f, "node {node} continues"),
            Self::StepClock { node, by } => write!(f, "the clock of node {node} steps by {by}"),
            Self::BeginLag => write!(f, "the replica begins to lag"),
            Self::FailOver => write!(f, "the replica becomes the primary"),
        }
    }
}
