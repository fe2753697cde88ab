//! `tollgate policy`.

use std::path::Path;

use serde_json::{Value, json};
use tollgate::policy::{self, Policy, PolicyError};
use tollgate::{Limit, Limiter, ManualClock, MemoryStore, Quota};

use super::args::PolicyCommand;
use super::check::sentence;
use super::facts::body_of;
use super::{Exit, ready};
use crate::policy_file::{LoadError, PolicyFile};
use crate::wire::explanation::Explanation;
use crate::wire::question;

pub(super) fn run(command: &PolicyCommand) -> Exit {
    match command {
        PolicyCommand::Validate { file, json } => validate(file, *json),
        PolicyCommand::Explain { file, facts, cost, json } => explain(file, facts, *cost, *json),
        PolicyCommand::Schema => {
            print!("{}", policy::SCHEMA);
            Exit::Success
        }
    }
}

/// The policy of a file, under the built-in default limit.
pub(super) fn load(file: Option<&Path>) -> Result<Policy, LoadError> {
    let default = Limit::sliding_window(Quota::per_minute(100));
    let default = default.map_err(|error| LoadError::Unreadable(error.to_string()))?;
    PolicyFile::new(file.map(Path::to_path_buf), default).load()
}

fn validate(file: &Path, json: bool) -> Exit {
    let loaded = load(Some(file));
    if json {
        println!("{}", report(file, &loaded));
    }
    match loaded {
        Ok(policy) => {
            for warning in policy.warnings() {
                eprintln!("{}: warning: {warning}", file.display());
            }
            if !json {
                let count = policy.rules().len();
                let rules = if count == 1 { "1 rule" } else { &format!("{count} rules") };
                println!("{}: ok, {rules}, version {}", file.display(), policy.version());
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
                LoadError::Wrong(wrong) => Some(wrong),
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
        let asked = question::read(body.as_bytes()).map_err(|error| error.to_string())?;
        let store = MemoryStore::builder().clock(ManualClock::new()).build();
        let limiter = Limiter::new(store, policy, ());
        let told = limiter.explain(&asked, |tried, outcome| {
            serde_json::to_value(Explanation::new(tried, outcome))
        });
        let told = ready::now(told).map_err(|error| error.to_string())?;
        told.map_err(|error| error.to_string())
    });
    match explained {
        Ok(explanation) if json => println!("{explanation}"),
        Ok(explanation) => tell(&explanation),
        Err(reason) => {
            eprintln!("tollgate: {reason}");
            return Exit::Usage;
        }
    }
    Exit::Success
}

fn tell(explanation: &Value) {
    for rule in explanation["rules"].as_array().into_iter().flatten() {
        let name = rule["rule"].as_str().unwrap_or_default();
        match rule["because"].as_str() {
            Some(because) => println!("  {name}: no, {because}"),
            None => println!("  {name}: matches"),
        }
    }
    for take in explanation["takes"].as_array().into_iter().flatten() {
        let text = |field: &str| take[field].as_str().unwrap_or_default().to_owned();
        let numbers = &take["numbers"];
        let window = match (&numbers["window_ms"], &numbers["ttl_ms"]) {
            (Value::Number(ms), _) => format!(" per {ms} ms"),
            (_, Value::Number(ms)) => format!(" at once, {ms} ms each"),
            _ => String::new(),
        };
        let (cost, key, algorithm) = (&take["cost"], text("key"), text("algorithm"));
        let (limit, mode) = (&numbers["limit"], text("mode"));
        println!("takes {cost} from {key}: {limit}{window}, {algorithm}, {mode}");
    }
    println!("{}", sentence(&explanation["answer"]));
}
