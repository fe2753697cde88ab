//! `tollgate serve`.

use tokio::runtime;

use super::Exit;
use super::variable::variable_of;
use crate::error::SettingsError;
use crate::serve::{FrontEnd, serve};
use crate::settings::args::ServeArgs;
use crate::settings::{Environment, Settings, SettingsFile};
use crate::telemetry::{Traces, log_to_stderr};

pub(super) fn run(args: ServeArgs, front_ends: Vec<FrontEnd>) -> Exit {
    let environment = Environment::of_process();
    let file = SettingsFile::read(args.config.as_deref());
    let settings = file.and_then(|file| {
        // The log must exist before the first line is written to it.
        log_to_stderr(args.log_format.or(file.log_format).unwrap_or_default());
        let addresses: Vec<_> = front_ends.iter().map(FrontEnd::address).collect();
        Settings::resolve(args, file, &environment, &addresses)
    });
    let settings = match settings {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("tollgate: {}", with_variable(error));
            return Exit::Usage;
        }
    };
    let runtime = match runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("tollgate: cannot start the async runtime: {error}");
            return Exit::NoAnswer;
        }
    };
    let traces = Traces::start(&environment, &settings.node_id, settings.traced_decisions);
    let served = runtime.block_on(serve(settings, front_ends, &traces));
    traces.shutdown();
    // Without waiting: the name of a lost Redis may be resolved for a long time.
    runtime.shutdown_background();
    match served {
        Ok(()) => Exit::Success,
        Err(error) => {
            eprintln!("tollgate: {error}");
            Exit::Usage
        }
    }
}

/// Names the variable instead of the flag in the error of a value that comes from it.
fn with_variable(error: SettingsError) -> SettingsError {
    match error.setting().strip_prefix("--").and_then(variable_of::<ServeArgs>) {
        Some(variable) => error.renamed(variable),
        None => error,
    }
}
