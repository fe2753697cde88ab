//! Sending one request to a running service.

use std::time::Duration;

use hyper::Method;
use tokio::runtime;

use super::failure::{fail, fail_with};
use super::response::Problem;
use super::{Exit, ServerArgs};
use crate::cli::client::{ClientError, Server};
use crate::{error::SettingsError, settings::Environment};

/// Error text for a response that no Tollgate service sends.
pub(super) const NOT_TOLLGATE: &str =
    "the response is not from a Tollgate service; check the address in --server";

/// Timeout of an admin change: resetting a client can take the service 30 s, because it searches all keys.
const ADMIN_CHANGE_TIMEOUT: Duration = Duration::from_secs(40);

/// Status and body of a response.
pub(super) type Reply = (u16, String);

/// Sends a request and returns the response. Reports a failure and returns the exit code.
pub(super) fn send(
    args: &ServerArgs,
    token: Option<&str>,
    (method, path, body): (Method, &str, Option<String>),
) -> Result<Reply, Exit> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else {
        return Err(fail(Exit::NoAnswer, "cannot start the async runtime"));
    };
    let server = match method {
        Method::POST | Method::PUT if path.starts_with("/admin/") => {
            Server::from_args(args).map(|server| server.with_timeout(ADMIN_CHANGE_TIMEOUT))
        }
        _ => Server::from_args(args),
    };
    let reply = server.and_then(|server| runtime.block_on(server.send(method, path, body, token)));
    reply.map_err(|error| match error {
        ClientError::Usage(reason) => fail(Exit::Usage, &reason),
        ClientError::NoAnswer(reason) => {
            fail(Exit::NoAnswer, &format!("no response from {}: {reason}", args.server))
        }
    })
}

/// Reads a token from a variable, or from the file that the second variable names. Of several tokens, the
/// first one is used.
pub(super) fn token(
    name: &'static str,
    file: &'static str,
) -> Result<Option<String>, SettingsError> {
    let secret = Environment::of_process().secret(name, file)?;
    Ok(secret.and_then(|(_, text)| {
        let mut tokens = text.split(|letter: char| letter.is_whitespace() || letter == ',');
        tokens.find(|token| !token.is_empty()).map(str::to_owned)
    }))
}

/// Reports an error response and returns the exit code: 404 is refused, any other 4xx is
/// a usage error, and everything else counts as no answer.
pub(super) fn report_error((status, body): &Reply) -> Exit {
    let exit = match status {
        404 => Exit::Refused,
        400..500 => Exit::Usage,
        _ => Exit::NoAnswer,
    };
    match serde_json::from_str::<Problem>(body) {
        Ok(problem) => fail_with(exit, &format!("{status}: {}", problem.detail), Some(body)),
        Err(_) => fail(exit, &format!("{status}: {NOT_TOLLGATE}")),
    }
}
