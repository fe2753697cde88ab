//! Which server is asked.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::call::Call;
use crate::caller::Caller;
use crate::connection::ServerInfo;
use crate::failure::Failure;
use crate::link::{Link, Then};
use crate::resp::{Command, Reply};
use crate::slot::Slot;

/// The servers of a deployment.
#[derive(Debug)]
pub(crate) enum Router {
    /// One server has everything.
    One(Arc<Caller>),
}

impl Router {
    /// Where the key is.
    pub(crate) fn slot(&self, _key: &[u8]) -> Slot {
        match self {
            Self::One(_) => Slot::ONLY,
        }
    }

    /// Calls a program where the slot is. `then` is told once, and must not block.
    pub(crate) fn call(&self, _slot: Slot, call: Arc<Call>, then: Then) {
        match self {
            Self::One(caller) => caller.call(call, then),
        }
    }

    /// Calls a program where its first key is. The call is on its way when this returns.
    pub(crate) fn run(&self, call: Call) -> impl Future<Output = Result<Reply, Failure>> + use<> {
        let slot = call.keys.first().map_or(Slot::ONLY, |key| self.slot(key));
        let (sender, receiver) = oneshot::channel();
        self.call(slot, Arc::new(call), Box::new(|reply| drop(sender.send(reply))));
        async {
            receiver.await.unwrap_or_else(|_| Err(Failure::Lost("its driver has ended".to_owned())))
        }
    }

    /// Asks where the key is.
    pub(crate) async fn ask(&self, _key: &[u8], command: Command) -> Result<Reply, Failure> {
        match self {
            Self::One(caller) => caller.link().ask(command).await,
        }
    }

    /// The servers that have keys, in an order that stays.
    pub(crate) fn servers(&self) -> Vec<Link> {
        match self {
            Self::One(caller) => vec![caller.link().clone()],
        }
    }

    /// Proves that it can be reached, and tells what it is.
    pub(crate) async fn open(&self) -> Result<Option<ServerInfo>, Failure> {
        match self {
            Self::One(caller) => caller.link().open().await,
        }
    }
}
