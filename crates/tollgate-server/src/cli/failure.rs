//! Failures of commands: a line on standard error and, with `--json`, one JSON object on standard output.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::Exit;
use super::stdout::print;

/// Whether the command was called with `--json`. Set once, before the command runs: every failure of the process has the
/// same format, also one that is found where the arguments are not known.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Selects the format of failures.
pub(super) fn set_json(is_json: bool) {
    IS_JSON.store(is_json, Ordering::Relaxed);
}

/// Reports a failure and returns its exit code.
pub(super) fn fail(exit: Exit, message: &str) -> Exit {
    fail_with(exit, message, None)
}

/// Reports a failure with the JSON response of the service, and returns its exit code.
pub(super) fn fail_with(exit: Exit, message: &str, response: Option<&str>) -> Exit {
    if IS_JSON.load(Ordering::Relaxed) {
        print(&format!("{}\n", object(exit, message, response)));
    }
    // Ignores write errors, because the terminal may be closed.
    let _ = writeln!(io::stderr(), "tollgate: {message}");
    exit
}

/// Prints the JSON object of a failure whose text is already on standard error.
pub(super) fn print_object(exit: Exit, message: &str) {
    print(&format!("{}\n", object(exit, message, None)));
}

fn object(exit: Exit, message: &str, response: Option<&str>) -> Value {
    let mut error = json!({
        "kind": exit.failure_kind(),
        "message": message,
        "exit_code": exit.code(),
    });
    let response = response.and_then(|text| serde_json::from_str::<Value>(text).ok());
    if let (Some(fields), Some(response)) = (error.as_object_mut(), response) {
        fields.insert("response".to_owned(), response);
    }
    json!({"error": error})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_has_kind_message_and_exit_code() {
        assert_eq!(
            object(Exit::Usage, "no", None).to_string(),
            r#"{"error":{"exit_code":2,"kind":"usage","message":"no"}}"#
        );
        let with_response = object(Exit::NoAnswer, "no", Some("{\"status\":503}"));
        assert_eq!(with_response["error"]["response"]["status"], 503);
        assert_eq!(object(Exit::Refused, "no", Some("not JSON"))["error"]["kind"], "not_found");
    }
}
