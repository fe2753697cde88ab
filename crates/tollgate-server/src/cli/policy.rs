//! `tollgate policy`.

use std::path::{Path, PathBuf};

use tollgate::policy::{self, ImportFormat, Policy};
use tollgate::{Costs, Distributed, Limiter, ManualClock, MemoryStore};

use super::Exit;
use super::args::{ImportSource, PolicyCommand};
use super::block_on::block_on;
use super::facts::request_body;
use super::failure::fail;
use super::response::ExplainReply;
use super::stdout::print;
use super::validate;
use crate::files::policy_file::{self, LoadError, PolicyFile};
use crate::wire::costs::Amount;
use crate::wire::explanation::ExplainResponse;
use crate::wire::query;

pub(super) fn run(command: &PolicyCommand) -> Exit {
    match command {
        PolicyCommand::Validate { files, json } => validate::run(files, *json),
        PolicyCommand::Explain { file, facts, cost, json } => explain(file, facts, cost, *json),
        PolicyCommand::Schema => {
            print(policy::SCHEMA);
            Exit::Success
        }
        PolicyCommand::Import { from, files } => import(*from, files),
        PolicyCommand::Suggest(args) => super::replay::suggest(args),
    }
}

/// Loads a policy file; without a file, returns the policy with the built-in default limit.
pub(super) fn load(file: Option<&Path>) -> Result<Policy, LoadError> {
    PolicyFile::new(file.map(Path::to_path_buf), Policy::builtin_limit()).load()
}

/// Explains a request against unused counters.
fn explain(file: &Path, facts: &[String], amounts: &[Amount], json: bool) -> Exit {
    let costs = Amount::costs(amounts).map_err(|reason| format!("--cost: {reason}"));
    let explanation = costs.and_then(|costs| Ok((explanation(file, facts, &costs)?, costs)));
    let lines = explanation.and_then(|(explanation, costs)| match json {
        true => Ok(vec![explanation]),
        false => serde_json::from_str(&explanation)
            .map(|reply: ExplainReply| reply.lines(&costs))
            .map_err(|error| error.to_string()),
    });
    match lines {
        Ok(lines) => {
            print(&format!("{}\n", lines.join("\n")));
            Exit::Success
        }
        Err(reason) => fail(Exit::Usage, &reason),
    }
}

/// Returns the JSON that /explain would return.
fn explanation(file: &Path, facts: &[String], costs: &Costs) -> Result<String, String> {
    let policy = load(Some(file)).map_err(|error| error.to_string())?;
    let body = request_body(facts, costs)?;
    let query = query::read(body.as_bytes()).map_err(|error| error.to_string())?;
    let store = MemoryStore::builder().clock(ManualClock::new()).build();
    let limiter = Limiter::new(store, policy);
    let explanation = limiter.explain(&query, |explanation| {
        serde_json::to_string(&ExplainResponse::new(explanation, Distributed::On))
    });
    let json = block_on(explanation).map_err(|error| error.to_string())?;
    json.map_err(|error| error.to_string())
}

/// Prints configuration files of another rate limiter as a policy.
fn import(source: ImportSource, files: &[PathBuf]) -> Exit {
    let format = match source {
        ImportSource::Envoy => ImportFormat::Envoy,
        ImportSource::Limitador => ImportFormat::Limitador,
    };
    let read = |file: &PathBuf| Ok((file.display().to_string(), policy_file::read(file)?));
    let texts: Vec<(String, String)> =
        match files.iter().map(read).collect::<Result<_, LoadError>>() {
            Ok(texts) => texts,
            Err(error) => {
                eprintln!("{error}");
                return Exit::Usage;
            }
        };
    let texts: Vec<_> = texts.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
    match policy::import(format, &texts) {
        Ok(imported) => {
            for warning in &imported.warnings {
                eprintln!("{warning}");
            }
            print(&imported.yaml);
            Exit::Success
        }
        Err(error) => {
            eprintln!("{error}");
            Exit::Refused
        }
    }
}
