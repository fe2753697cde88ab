//! Prints the core library's benchmarks as one markdown document.

use std::env;
use std::process::ExitCode;

use tollgate_bench::machine::Given;
use tollgate_bench::report::Report;
use tollgate_bench::scale::Scale;
use tollgate_bench::{Outcome, memory};

const USAGE: &str = "usage: core [--quick] [--date TEXT] [--rustc TEXT]";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let printed = match arguments.split_first() {
        Some((first, rest)) if first == memory::CHILD => memory::child(rest),
        _ => match parse(&arguments) {
            Some((scale, given)) => report(scale, given),
            None => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        },
    };
    match printed {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("core: {error}");
            ExitCode::FAILURE
        }
    }
}

fn report(scale: Scale, given: Given) -> Outcome<String> {
    Ok(Report::measure(scale, &env::current_exe()?, given)?.to_string())
}

fn parse(arguments: &[String]) -> Option<(Scale, Given)> {
    let mut scale = Scale::FULL;
    let mut given = Given {
        date: "not given".to_owned(),
        rustc: "not given".to_owned(),
        command: "scripts/bench core".to_owned(),
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => {
                scale = Scale::QUICK;
                given.command.push_str(" --quick");
            }
            "--date" => given.date.clone_from(arguments.next()?),
            "--rustc" => given.rustc.clone_from(arguments.next()?),
            _ => return None,
        }
    }
    Some((scale, given))
}
