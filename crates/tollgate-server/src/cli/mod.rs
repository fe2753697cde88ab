//! The command line: arguments in, an exit code out.

mod admin;
mod admin_args;
mod args;
mod asking;
mod check;
mod exit;
mod facts;
mod man;
mod override_response;
mod policy;
mod ready;
mod response;
mod serve;
mod server_args;
mod simulate;
mod stdout;
mod top;

pub(crate) use admin_args::{OverrideCommand, ResetArgs, SetArgs, WhoArgs};
pub(crate) use args::{AtCapArg, DistributedArg, LogArg, ScriptingArg, ServeArgs};
pub use args::{Cli, run};
pub use exit::Exit;
pub(crate) use server_args::ServerArgs;
pub(crate) use top::TopArgs;
