//! `tollgate replay` and `tollgate policy suggest`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::failure::fail;
use super::policy::load;
use super::stdout::print;
use super::{Exit, page_file};
use crate::replay::{self, CostField, Replay, ReplayError, Report};

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Policy file
    #[arg(long, value_name = "FILE", env = "TOLLGATE_POLICY")]
    pub(crate) policy: PathBuf,
    #[command(flatten)]
    pub(crate) logs: LogArgs,
    /// Field with the amount of a unit that a request costs, such as bytes=sent in JSON logs; repeatable. In access
    /// logs, size is the response size. Without a value, the amount is 0
    #[arg(long = "cost-field", value_name = "UNIT=FIELD", value_parser = CostField::parse)]
    pub(crate) cost_fields: Vec<CostField>,
    /// Second policy file: report the keys that it newly refuses and those that it no longer refuses
    #[arg(long, value_name = "OTHER")]
    pub(crate) compare: Option<PathBuf>,
    /// Write a page with plots to this file, which must not be an input
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print the report as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Logs of a replay.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Access logs, plain or gzip; - is standard input. Several logs are merged by time
    #[arg(required = true, value_name = "LOG")]
    pub(crate) logs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) fields: FieldArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SuggestArgs {
    /// Access logs, plain or gzip, in files. Several logs are merged by time
    #[arg(required = true, value_name = "LOG")]
    pub(crate) logs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) fields: FieldArgs,
}

/// Names of JSON fields.
#[derive(Debug, Args)]
pub(crate) struct FieldArgs {
    /// JSON field of a fact or of the time, such as time=ts or user=account; repeatable
    #[arg(long = "field", value_name = "NAME=FIELD", value_parser = field)]
    pub(crate) fields: Vec<(String, String)>,
}

fn field(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, field)) if !name.is_empty() && !field.is_empty() => {
            Ok((name.to_owned(), field.to_owned()))
        }
        _ => Err("must be NAME=FIELD, such as time=ts".to_owned()),
    }
}

pub(super) fn run(args: &ReplayArgs) -> Exit {
    match report(args) {
        Ok(report) => finish(args, &report),
        Err(error) => fail(Exit::Usage, &error.to_string()),
    }
}

fn report(args: &ReplayArgs) -> Result<Report, ReplayError> {
    if let Some(page) = &args.html {
        let inputs = args.logs.logs.iter().chain([&args.policy]).chain(&args.compare);
        page_file::check(page, inputs.map(PathBuf::as_path)).map_err(ReplayError::new)?;
    }
    let open = |file: &Path| {
        let policy = load(Some(file)).map_err(|error| ReplayError::new(error.to_string()))?;
        Ok((file.display().to_string(), policy))
    };
    let (name, policy) = open(&args.policy)?;
    let other = args.compare.as_deref().map(open).transpose()?;
    replay::replay(&Replay {
        policy: (&name, &policy),
        other: other.as_ref().map(|(name, other)| (name.as_str(), other)),
        logs: &args.logs.logs,
        fields: &args.logs.fields.fields,
        costs: &args.cost_fields,
    })
}

fn finish(args: &ReplayArgs, report: &Report) -> Exit {
    for note in replay::notes(report) {
        eprintln!("tollgate: {note}");
    }
    if args.json {
        print(&format!("{}\n", replay::json_line(report)));
    } else {
        print(&replay::text_report(report));
    }
    if let Some(file) = &args.html
        && let Err(error) = std::fs::write(file, replay::html_page(report))
    {
        return fail(Exit::Usage, &page_file::write_error(file, &error));
    }
    Exit::Success
}

/// Prints a starting policy for the traffic of the logs.
pub(super) fn suggest(args: &SuggestArgs) -> Exit {
    match replay::suggest(&args.logs, &args.fields.fields) {
        Ok(suggested) => {
            for note in replay::skipped_notes(&suggested.skipped) {
                eprintln!("tollgate: {note}");
            }
            print(&suggested.yaml);
            Exit::Success
        }
        Err(error) => fail(Exit::Usage, &error.to_string()),
    }
}
