//! `tollgate policy`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tollgate::policy::{self, ImportFormat, Policy, PolicyError};
use tollgate::{Distributed, Limiter, ManualClock, MemoryStore};

use super::Exit;
use super::args::{ImportSource, PolicyCommand};
use super::block_on::block_on;
use super::facts::request_body;
use super::response::ExplainReply;
use super::stdout::print;
use crate::files::policy_file::{self, LoadError, PolicyFile};
use crate::wire::explanation::ExplainResponse;
use crate::wire::query;

pub(super) fn run(command: &PolicyCommand) -> Exit {
    match command {
        PolicyCommand::Validate { file, json } => validate(file, *json),
        PolicyCommand::Explain { file, facts, cost, json } => explain(file, facts, *cost, *json),
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

fn validate(file: &Path, json: bool) -> Exit {
    let loaded = load(Some(file));
    if json {
        print(&format!("{}\n", report(file, &loaded)));
    }
    match loaded {
        Ok(policy) => {
            for warning in policy.warnings() {
                eprintln!("{}: warning: {warning}", file.display());
            }
            if !json {
                let count = policy.rules().len();
                let rules = if count == 1 { "1 rule" } else { &format!("{count} rules") };
                let (file, version) = (file.display(), policy.version());
                print(&format!("{file}: ok, {rules}, version {version}\n"));
            }
            Exit::Success
        }
        Err(error) => {
            if !json {
                eprintln!("{error}");
            }
            Exit::Usage
        }
    }
}

fn report(file: &Path, loaded: &Result<Policy, LoadError>) -> Value {
    let file = file.display().to_string();
    match loaded {
        Ok(policy) => json!({
            "file": file,
            "valid": true,
            "version": policy.version(),
            "rules": policy.rules().len(),
            "warnings": policy.warnings(),
        }),
        Err(error) => {
            let position = match error {
                LoadError::Invalid(error) => Some(error),
                LoadError::Unreadable(_) => None,
            };
            json!({
                "file": file,
                "valid": false,
                "line": position.map(PolicyError::line),
                "column": position.map(PolicyError::column),
                "field": position.map(PolicyError::field),
                "error": error.to_string(),
            })
        }
    }
}

/// Explains a request against unused counters.
fn explain(file: &Path, facts: &[String], cost: u64, json: bool) -> Exit {
    let explanation = explanation(file, facts, cost);
    let lines = explanation.and_then(|explanation| match json {
        true => Ok(vec![explanation]),
        false => serde_json::from_str(&explanation)
            .map(|reply: ExplainReply| reply.lines(cost))
            .map_err(|error| error.to_string()),
    });
    match lines {
        Ok(lines) => {
            print(&format!("{}\n", lines.join("\n")));
            Exit::Success
        }
        Err(reason) => {
            eprintln!("tollgate: {reason}");
            Exit::Usage
        }
    }
}

/// Returns the JSON that /explain would return.
fn explanation(file: &Path, facts: &[String], cost: u64) -> Result<String, String> {
    let policy = load(Some(file)).map_err(|error| error.to_string())?;
    let body = request_body(facts, cost)?;
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
