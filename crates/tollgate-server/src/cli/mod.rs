//! The command line: arguments in, an exit code out.

mod administer;
mod administer_args;
mod args;
mod asking;
mod check;
mod exit;
mod facts;
mod man;
mod policy;
mod ready;
mod say;
mod serve;
mod server_args;
mod simulate;
mod told;
mod told_override;
mod top;

pub(crate) use administer_args::{OverrideCommand, ResetArgs, SetArgs, WhoArgs};
pub(crate) use args::{AtCapArg, DistributedArg, LogArg, ScriptingArg, ServeArgs};
pub use args::{Cli, run};
pub use exit::Exit;
pub(crate) use server_args::ServerArgs;
pub(crate) use top::TopArgs;
