//! The `tollgate` binary.

use std::process::ExitCode;

use clap::Parser;
use tollgate_server::{Cli, run};

fn main() -> ExitCode {
    run(Cli::parse()).into()
}
