//! What the programs of all subjects take and how they end.

use std::process::ExitCode;

use crate::Outcome;
use crate::machine::Given;

/// What every subject's program takes.
pub const OPTIONS: &str = "[--quick] [--date TEXT] [--rustc TEXT]";

/// What a subject's program was asked for.
#[derive(Debug, Clone)]
pub struct Query {
    /// A few seconds' worth only.
    pub quick: bool,
    /// What the program cannot know by itself.
    pub given: Given,
}

impl Query {
    /// Reads the arguments after the program's name; nothing if they are not [`OPTIONS`].
    pub fn parse(subject: &str, arguments: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut quick = false;
        let mut given = Given {
            date: "not given".to_owned(),
            rustc: "not given".to_owned(),
            command: format!("scripts/bench {subject}"),
        };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => quick = true,
                "--date" => given.date = arguments.next()?,
                "--rustc" => given.rustc = arguments.next()?,
                _ => return None,
            }
        }
        if quick {
            given.command.push_str(" --quick");
        }
        Some(Self { quick, given })
    }
}

/// Prints what came out, or why nothing did.
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

/// Says how a program is called.
#[must_use]
pub fn usage(program: &str, options: &str) -> ExitCode {
    eprintln!("usage: {program} {options}");
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Option<Query> {
        Query::parse("core", line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_quick_run_is_told_from_a_full_one_by_its_command() {
        let full = parse("--date today --rustc 1.95").unwrap();
        assert!(!full.quick);
        assert_eq!([full.given.date, full.given.rustc], ["today", "1.95"]);
        assert_eq!(full.given.command, "scripts/bench core");
        assert_eq!(parse("--quick").unwrap().given.command, "scripts/bench core --quick");
    }

    #[test]
    fn unknown_and_unfinished_options_are_refused() {
        assert!(parse("--slow").is_none());
        assert!(parse("--date").is_none());
    }
}
