//! The `tollgate` binary.

use std::process::ExitCode;

use clap::Parser;
use tollgate_server::{Cli, run};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    run(Cli::parse()).into()
}
