//! Command line: argument parsing, subcommands and exit codes.

mod admin;
mod admin_args;
mod args;
mod block_on;
mod check;
mod client;
mod exit;
mod facts;
mod failure;
mod man;
mod override_response;
mod override_set_response;
mod page_file;
mod parse;
mod policy;
mod replay;
mod request;
mod response;
mod rule_candidates;
mod serve;
mod server_args;
mod simulate;
mod source_line;
mod stdout;
mod top;
mod validate;
mod variable;

pub(crate) use admin_args::{ChangeArgs, OverrideCommand, ResetArgs, SetArgs};
pub use args::{Cli, run, run_with};
pub use exit::Exit;
pub use parse::parse_args;
pub(crate) use replay::{ReplayArgs, SuggestArgs};
pub(crate) use server_args::ServerArgs;
pub(crate) use top::TopArgs;
