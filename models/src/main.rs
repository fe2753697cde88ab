//! Runs the models of concurrency. `scripts/models` builds it with `--cfg tollgate_model`.

#[cfg(tollgate_model)]
mod run;

#[cfg(tollgate_model)]
fn main() -> std::process::ExitCode {
    run::main()
}

#[cfg(not(tollgate_model))]
fn main() -> std::process::ExitCode {
    eprintln!("tollgate-models: this build contains no models; run scripts/models");
    std::process::ExitCode::FAILURE
}
