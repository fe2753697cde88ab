//! `tollgate policy validate`: every error of every file, with its source line.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tollgate::policy::{FieldError, Policy, PolicyError};

use super::Exit;
use super::source_line::source_line;
use super::stdout::print;
use crate::files::policy_file::{self, LoadError};

/// The maximum number of errors that are printed for one file.
const MAX_PRINTED: usize = 100;
/// The maximum size of a policy on standard input, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// Validates all files; `-` is standard input.
pub(super) fn run(files: &[PathBuf], is_json: bool) -> Exit {
    let mut exit = Exit::Success;
    for file in files {
        let name =
            if file == Path::new("-") { "stdin".to_owned() } else { file.display().to_string() };
        let (text, loaded) = match read(file) {
            Ok(text) => {
                let loaded = Policy::from_yaml(&name, &text, Policy::builtin_limit());
                (text, loaded.map_err(LoadError::Invalid))
            }
            Err(error) => (String::new(), Err(error)),
        };
        if is_json {
            print(&format!("{}\n", report(&name, &loaded)));
        }
        match &loaded {
            Ok(policy) => print_valid(&name, policy, is_json),
            Err(error) => {
                exit = Exit::Usage;
                if !is_json {
                    eprint!("{}", error_text(&name, &text, error));
                }
            }
        }
    }
    exit
}

fn read(file: &Path) -> Result<String, LoadError> {
    if file != Path::new("-") {
        return policy_file::read(file);
    }
    let unreadable =
        |reason: &dyn std::fmt::Display| LoadError::Unreadable(format!("stdin: {reason}"));
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(&error))?;
    String::from_utf8(bytes).map_err(|_| unreadable(&"is not UTF-8 text"))
}

fn print_valid(name: &str, policy: &Policy, is_json: bool) {
    for warning in policy.warnings() {
        eprintln!("{name}: warning: {warning}");
    }
    if !is_json {
        let count = policy.rules().len();
        let rules = if count == 1 { "1 rule" } else { &format!("{count} rules") };
        print(&format!("{name}: valid ({rules}), version {}\n", policy.version()));
    }
}

/// Returns the errors of a file, each with its source line.
fn error_text(name: &str, text: &str, error: &LoadError) -> String {
    let error = match error {
        LoadError::Unreadable(reason) => return format!("{reason}\n"),
        LoadError::Invalid(error) => error,
    };
    let mut printed = String::new();
    for error in error.errors().take(MAX_PRINTED) {
        printed.push_str(&format!("{name}:{error}\n"));
        printed.push_str(&source_line(text, error));
    }
    let count = error.errors().count();
    if let more @ 1.. = count.saturating_sub(MAX_PRINTED) {
        printed.push_str(&format!("{name}: and {more} more errors\n"));
    }
    let errors = if count == 1 { "1 error" } else { &format!("{count} errors") };
    printed.push_str(&format!("{name}: invalid ({errors})\n"));
    printed
}

fn report(name: &str, loaded: &Result<Policy, LoadError>) -> Value {
    let error = match loaded {
        Ok(policy) => {
            return json!({
                "file": name,
                "valid": true,
                "version": policy.version(),
                "rules": policy.rules().len(),
                "warnings": policy.warnings(),
            });
        }
        Err(error) => error,
    };
    let first = match error {
        LoadError::Invalid(error) => Some(error),
        LoadError::Unreadable(_) => None,
    };
    let errors: Vec<Value> =
        first.into_iter().flat_map(PolicyError::errors).take(MAX_PRINTED).map(entry).collect();
    json!({
        "file": name,
        "valid": false,
        "line": first.map(PolicyError::line),
        "column": first.map(PolicyError::column),
        "field": first.map(PolicyError::field),
        "error": error.to_string(),
        "errors": errors,
    })
}

fn entry(error: &FieldError) -> Value {
    json!({
        "line": error.line(),
        "column": error.column(),
        "field": error.field(),
        "message": error.message(),
    })
}
