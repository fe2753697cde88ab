//! Asking a service for something, with a token where it wants one.

use std::time::Duration;

use hyper::Method;
use tokio::runtime;

use super::response::ToldProblem;
use super::{Exit, ServerArgs};
use crate::client::{AskError, Server};
use crate::settings::{Environment, SettingsError};

/// How long changes that search are waited for.
const LONG: Duration = Duration::from_secs(40);

/// What a service answered.
pub(super) type Answered = (u16, String);

/// Asks, or says why that cannot be and how the command ends.
pub(super) fn ask(
    args: &ServerArgs,
    token: Option<&str>,
    (method, path, body): (Method, &str, Option<String>),
) -> Result<Answered, Exit> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else {
        eprintln!("tollgate: the runtime could not be started");
        return Err(Exit::NoAnswer);
    };
    // A service may take half a minute to find all that a client has used.
    let server = match method {
        Method::POST if path.starts_with("/admin/") => {
            Server::of(args).map(|server| server.patient(LONG))
        }
        _ => Server::of(args),
    };
    let asked = server.and_then(|server| runtime.block_on(server.ask(method, path, body, token)));
    asked.map_err(|error| match error {
        AskError::Usage(reason) => {
            eprintln!("tollgate: {reason}");
            Exit::Usage
        }
        AskError::NoAnswer(reason) => {
            eprintln!("tollgate: no answer from {}: {reason}", args.server);
            Exit::NoAnswer
        }
    })
}

/// The token of a variable or of the file that another names. Of two, the first is the one to use.
pub(super) fn token(
    name: &'static str,
    file: &'static str,
) -> Result<Option<String>, SettingsError> {
    let given = Environment::of_process().secret(name, file)?;
    Ok(given.and_then(|(_, text)| {
        let mut all = text.split(|letter: char| letter.is_whitespace() || letter == ',');
        all.find(|token| !token.is_empty()).map(str::to_owned)
    }))
}

/// Says what a service said instead of an answer, and how the command ends: a wrong question is usage, what is not
/// there is refused, and a service that cannot answer is no answer.
pub(super) fn otherwise((status, answer): &Answered) -> Exit {
    match serde_json::from_str::<ToldProblem>(answer) {
        Ok(problem) => eprintln!("tollgate: {status}: {}", problem.detail),
        Err(_) => eprintln!("tollgate: {status}: that is no answer of a tollgate service"),
    }
    match status {
        404 => Exit::Refused,
        400..500 => Exit::Usage,
        _ => Exit::NoAnswer,
    }
}
