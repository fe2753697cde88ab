//! Parsing of the command line. An invalid value of an environment variable is reported with the name of the variable.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, Error, Parser};

use super::variable::source_of;
use super::{Cli, Exit, failure};

/// Parses the arguments of the process. Prints help, the version or an error, and then returns the exit code.
///
/// # Errors
/// The command has nothing to run: the arguments are invalid, or ask for help.
pub fn parse_args() -> Result<Cli, Exit> {
    let args: Vec<OsString> = std::env::args_os().collect();
    Cli::try_parse_from(&args).map_err(|error| report(&error, &args))
}

fn report(error: &Error, args: &[OsString]) -> Exit {
    if !error.use_stderr() {
        // As with clap itself, a closed pipe is no failure.
        let _ = error.print();
        return Exit::Success;
    }
    let is_json = args.iter().skip(1).any(|arg| arg == "--json");
    let variable = variable_error(error, args);
    let message = variable.clone().unwrap_or_else(|| first_line(error));
    match variable {
        Some(message) => eprintln!("tollgate: {message}"),
        None => drop(error.print()),
    }
    // Without arguments, clap prints its help as an error.
    if is_json && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        failure::print_object(Exit::Usage, &message);
    }
    Exit::Usage
}

/// Returns the error of a variable; `None` if the invalid value comes from the command line.
fn variable_error(error: &Error, args: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let mut command = Cli::command();
    command.build();
    let command = selected(&command, args);
    let arg = command.get_arguments().find(|arg| arg.to_string() == *argument)?;
    let variable = source_of(arg, args)?;
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else {
        return None;
    };
    Some(format!("{variable}: invalid value {value:?}{}", reason(error, arg)))
}

/// Returns the command that the arguments select.
fn selected<'c>(command: &'c Command, args: &[OsString]) -> &'c Command {
    let words = args.iter().skip(1).filter_map(|arg| arg.to_str());
    words.fold(command, |command, word| command.find_subcommand(word).unwrap_or(command))
}

/// Returns what is valid instead: the possible values, or the cause of the error.
fn reason(error: &Error, arg: &Arg) -> String {
    let values = arg.get_possible_values();
    if !values.is_empty() {
        let names: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
        return format!(" (valid: {})", names.join(", "));
    }
    std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"))
}

/// Returns the first line of an error, without its prefix.
fn first_line(error: &Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
