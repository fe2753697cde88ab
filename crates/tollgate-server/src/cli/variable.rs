//! The environment variable that the value of a flag comes from.

use std::ffi::OsString;

use clap::{Arg, Args, Command};

/// Returns the variable that the value of a flag of `A` is read from. `None` if the flag is on the command line of this
/// process, or if the variable is unset or empty.
pub(super) fn variable_of<A: Args>(flag: &str) -> Option<String> {
    let command = A::augment_args(Command::new("tollgate"));
    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(flag))?;
    let variable = source_of(arg, &std::env::args_os().collect::<Vec<_>>())?;
    std::env::var_os(&variable).filter(|value| !value.is_empty()).map(|_| variable)
}

/// Returns the variable that an argument is read from; `None` if its flag is in `args`, or if the variable is unset.
pub(super) fn source_of(arg: &Arg, args: &[OsString]) -> Option<String> {
    let flag = format!("--{}", arg.get_long()?);
    let with_value = format!("{flag}=");
    let is_flag = |given: &OsString| {
        let given = given.to_string_lossy();
        given == flag || given.starts_with(&with_value)
    };
    if args.iter().any(is_flag) {
        return None;
    }
    let variable = arg.get_env()?;
    std::env::var_os(variable).map(|_| variable.to_string_lossy().into_owned())
}
