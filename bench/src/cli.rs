//! Command line and exit codes shared by all benchmark programs.

use std::process::ExitCode;

use crate::Outcome;
use crate::machine::RunInfo;

/// The options of every benchmark program.
pub const OPTIONS: &str = "[--quick] [--date TEXT] [--rustc TEXT]";

/// Parsed arguments of a benchmark program.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// Runs a short version, to test the program.
    pub is_quick: bool,
    /// Date, compiler and command for the report.
    pub run_info: RunInfo,
}

impl Arguments {
    /// Parses the arguments after the program name. Returns `None` if they do not match
    /// [`OPTIONS`].
    pub fn parse(subject: &str, arguments: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut is_quick = false;
        let mut run_info = RunInfo {
            date: "not given".to_owned(),
            rustc: "not given".to_owned(),
            command: format!("scripts/bench {subject}"),
        };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => is_quick = true,
                "--date" => run_info.date = arguments.next()?,
                "--rustc" => run_info.rustc = arguments.next()?,
                _ => return None,
            }
        }
        if is_quick {
            run_info.command.push_str(" --quick");
        }
        Some(Self { is_quick, run_info })
    }
}

/// Prints the report to standard output, or the error to standard error, and returns the exit code.
#[must_use]
pub fn finish(program: &str, printed: Outcome<String>) -> ExitCode {
    match printed {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the usage to standard error and returns exit code 2.
#[must_use]
pub fn usage(program: &str, options: &str) -> ExitCode {
    eprintln!("usage: {program} {options}");
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Option<Arguments> {
        Arguments::parse("core", line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn command_in_report_includes_quick() {
        let full = parse("--date today --rustc 1.95").unwrap();
        assert!(!full.is_quick);
        assert_eq!([full.run_info.date, full.run_info.rustc], ["today", "1.95"]);
        assert_eq!(full.run_info.command, "scripts/bench core");
        assert_eq!(parse("--quick").unwrap().run_info.command, "scripts/bench core --quick");
    }

    #[test]
    fn rejects_unknown_and_incomplete_options() {
        assert!(parse("--slow").is_none());
        assert!(parse("--date").is_none());
    }
}
