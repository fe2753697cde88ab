//! `tollgate policy`.

use std::path::Path;

use serde_json::{Value, json};
use tollgate::policy::{self, Policy, PolicyError};
use tollgate::{Distributed, Limiter, ManualClock, MemoryStore};

use super::args::PolicyCommand;
use super::facts::body_of;
use super::response::ExplainReply;
use super::stdout::say;
use super::{Exit, ready};
use crate::policy_file::{LoadError, PolicyFile};
use crate::wire::explanation::ExplainResponse;
use crate::wire::query;

pub(super) fn run(command: &PolicyCommand) -> Exit {
    match command {
        PolicyCommand::Validate { file, json } => validate(file, *json),
        PolicyCommand::Explain { file, facts, cost, json } => explain(file, facts, *cost, *json),
        PolicyCommand::Schema => {
            say(policy::SCHEMA);
            Exit::Success
        }
    }
}

/// The policy of a file, under the built-in default limit.
pub(super) fn load(file: Option<&Path>) -> Result<Policy, LoadError> {
    PolicyFile::new(file.map(Path::to_path_buf), Policy::builtin_limit()).load()
}

fn validate(file: &Path, json: bool) -> Exit {
    let loaded = load(Some(file));
    if json {
        say(&format!("{}\n", report(file, &loaded)));
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
                say(&format!("{file}: ok, {rules}, version {version}\n"));
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
            let at = match error {
                LoadError::Invalid(wrong) => Some(wrong),
                LoadError::Unreadable(_) => None,
            };
            json!({
                "file": file,
                "valid": false,
                "line": at.map(PolicyError::line),
                "column": at.map(PolicyError::column),
                "field": at.map(PolicyError::field),
                "error": error.to_string(),
            })
        }
    }
}

/// What a request would meet on counters that nobody has used.
fn explain(file: &Path, facts: &[String], cost: u64, json: bool) -> Exit {
    let explained = load(Some(file)).map_err(|error| error.to_string()).and_then(|policy| {
        let body = body_of(facts, cost)?;
        let asked = query::read(body.as_bytes()).map_err(|error| error.to_string())?;
        let store = MemoryStore::builder().clock(ManualClock::new()).build();
        let limiter = Limiter::new(store, policy);
        let told = limiter.explain(&asked, |explained| {
            serde_json::to_string(&ExplainResponse::new(explained, Distributed::On, None))
        });
        let told = ready::now(told).map_err(|error| error.to_string())?;
        told.map_err(|error| error.to_string())
    });
    let told = explained.and_then(|explanation| match json {
        true => Ok(vec![explanation]),
        false => serde_json::from_str(&explanation)
            .map(|explained: ExplainReply| explained.lines())
            .map_err(|error| error.to_string()),
    });
    match told {
        Ok(lines) => {
            say(&format!("{}\n", lines.join("\n")));
            Exit::Success
        }
        Err(reason) => {
            eprintln!("tollgate: {reason}");
            Exit::Usage
        }
    }
}
