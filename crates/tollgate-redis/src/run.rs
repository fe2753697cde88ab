//! One script, called once for one caller.

use tollgate::StoreError;

use crate::call::By;
use crate::failure::Failure;
use crate::resp::{Command, Reply};
use crate::script::Script;
use crate::store::Shared;

impl Shared {
    /// Runs the script on these keys, with what `arguments` adds to the call. A server that does not
    /// know the script has run nothing, and is sent its text.
    pub(crate) async fn run(
        &self,
        script: &Script,
        keys: &[&[u8]],
        arguments: impl Fn(Command) -> Command,
    ) -> Result<Reply, StoreError> {
        let command = |by: By| arguments(by.command(script, keys.iter().copied()));
        let link = self.coalescer.link();
        let reply = match link.ask(command(By::Hash)).await {
            Err(failure) if failure.is_unknown_script() => link.ask(command(By::Text)).await,
            other => other,
        };
        reply.map_err(Failure::into_store_error)
    }
}
