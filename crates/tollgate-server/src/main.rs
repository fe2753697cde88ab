//! The `tollgate` binary.

use std::process::ExitCode;

use tollgate_server::{parse_args, run};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    parse_args().map_or_else(|exit| exit, run).into()
}
