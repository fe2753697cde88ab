//! `tollgate serve`.

use std::io::IsTerminal;

use tokio::runtime;
use tracing_subscriber::EnvFilter;

use super::{Exit, LogArg, ServeArgs};
use crate::serve::serve;
use crate::settings::{Environment, Settings};

pub(super) fn run(args: ServeArgs) -> Exit {
    log_to_stderr(args.log_format);
    let settings = match Settings::resolve(args, &Environment::of_process()) {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("tollgate: {error}");
            return Exit::Usage;
        }
    };
    let runtime = match runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("tollgate: the runtime could not be started: {error}");
            return Exit::NoAnswer;
        }
    };
    match runtime.block_on(serve(settings)) {
        Ok(()) => Exit::Success,
        Err(error) => {
            eprintln!("tollgate: {error}");
            Exit::Usage
        }
    }
}

fn log_to_stderr(format: LogArg) {
    let filter = EnvFilter::try_from_env("TOLLGATE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // A second subscriber in one process is refused, which is fine: the first one stays.
    let _ = match format {
        LogArg::Text => builder.with_target(false).try_init(),
        LogArg::Json => builder.json().flatten_event(true).try_init(),
    };
}
