//! The handshake of a connection: login, database, connection name, server version.
//!
//! All commands are written together, so that a new connection costs one more round trip. Error messages do
//! not repeat the reply to a login: a server that does not know the command would quote the password.

use std::io;

use super::{ConnectError, Connection, ReadError, ServerInfo};
use super::{Endpoint, Target};
use crate::address::Login;
use crate::failure::{explain, is_temporary};
use crate::resp::{Command, ErrorReply, Reply};

/// Maximum reply in bytes. `INFO server` has about 1 kB.
const MAX_REPLY: usize = 64 * 1024;

/// The connection name in `CLIENT LIST`.
const NAME: &str = "tollgate";

/// Logs in and reads the server version. An error begins with a verb; the subject is the server.
pub(super) async fn handshake(
    connection: &mut Connection,
    target: &Target,
) -> Result<Option<ServerInfo>, ConnectError> {
    let database = target.database;
    let log_in = target.login.as_ref().map(auth);
    let select = (database != 0).then(|| Command::new("SELECT").number(u64::from(database)));
    let (has_login, has_database) = (log_in.is_some(), select.is_some());
    let name = Command::new("CLIENT").arg("SETNAME").arg(NAME);
    let info = Command::new("INFO").arg("server");
    let commands = [log_in, select, Some(name), Some(info)];
    // A server that refuses the connection sends the reason and closes: read it even if the write failed.
    let _ = connection.write(commands.into_iter().flatten()).await;

    if has_login && let Reply::Error(error) = read(connection, &target.endpoint).await? {
        return Err(login_refusal(&error));
    }
    if has_database && let Reply::Error(error) = read(connection, &target.endpoint).await? {
        let no_database = || ConnectError::Misconfigured(format!("has no database {database}"));
        return Err(refusal(&error, has_login, no_database));
    }
    if let Reply::Error(error) = read(connection, &target.endpoint).await?
        && let Some(reason) = known_refusal(&error, has_login)
    {
        return Err(reason);
    }
    match read(connection, &target.endpoint).await? {
        Reply::Bulk(info) => ServerInfo::parse(&info)
            .map_or(Ok(None), ServerInfo::check)
            .map_err(ConnectError::Misconfigured),
        Reply::Error(error) if is_info_denied(&error) => Ok(None),
        Reply::Error(error) => {
            let refused = || ConnectError::Unreachable(format!("refused INFO: {}", error.code));
            Err(refusal(&error, has_login, refused))
        }
        _ => Err(not_redis()),
    }
}

fn not_redis() -> ConnectError {
    ConnectError::Misconfigured("does not speak the Redis protocol".to_owned())
}

fn auth(login: &Login) -> Command {
    let command = Command::new("AUTH");
    let command = match &login.user {
        Some(user) => command.arg(user.expose()),
        None => command,
    };
    command.arg(login.password.expose())
}

async fn read(connection: &mut Connection, endpoint: &Endpoint) -> Result<Reply, ConnectError> {
    // A proxy whose server is down closes the connection too.
    connection.read(MAX_REPLY).await.map_err(|error| match error {
        ReadError::Malformed(_) => not_redis(),
        ReadError::Closed => {
            ConnectError::Unreachable(format!("closed the connection{}", hint(endpoint)))
        }
        ReadError::Failed(error) if error.kind() == io::ErrorKind::ConnectionReset => {
            ConnectError::Unreachable(format!("reset the connection{}", hint(endpoint)))
        }
        // An error with an inner error is of TLS, such as a missing client certificate.
        ReadError::Failed(error) if error.get_ref().is_some() => {
            ConnectError::Misconfigured(format!("broke the connection: {error}"))
        }
        ReadError::Failed(error) => {
            ConnectError::Unreachable(format!("broke the connection: {error}"))
        }
    })
}

/// Suggests a reason why a server closes the connection without a reply.
fn hint(endpoint: &Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Tcp(_) => ": if this is a TLS port, use rediss://",
        Endpoint::Tls(_, tls) if !tls.has_certificate() => {
            ": it may require a client certificate (cert and key)"
        }
        Endpoint::Tls(..) | Endpoint::Unix(_) => "",
    }
}

fn login_refusal(error: &ErrorReply) -> ConnectError {
    let reason = match error.message.contains("without any password configured") {
        true => "refused the password: it has no password configured",
        false => "refused the password",
    };
    refusal(error, true, || ConnectError::Misconfigured(reason.to_owned()))
}

fn refusal(
    error: &ErrorReply,
    has_login: bool,
    otherwise: impl FnOnce() -> ConnectError,
) -> ConnectError {
    if is_temporary(error) {
        return ConnectError::Unreachable(explain(error));
    }
    known_refusal(error, has_login).unwrap_or_else(otherwise)
}

/// Errors that any command may receive.
fn known_refusal(error: &ErrorReply, has_login: bool) -> Option<ConnectError> {
    let reason = match error.code.as_str() {
        "NOAUTH" if has_login => "refused the password",
        "NOAUTH" => "requires a password, and the address has none",
        "DENIED" => "is in protected mode: it accepts only local connections",
        "ERR" if error.message.contains("max number of clients") => {
            let reason = "has reached its maximum number of clients (maxclients)";
            return Some(ConnectError::Unreachable(reason.to_owned()));
        }
        _ => return None,
    };
    Some(ConnectError::Misconfigured(reason.to_owned()))
}

/// Whether the server denies `INFO` to this user. Its version is then unknown.
fn is_info_denied(error: &ErrorReply) -> bool {
    error.code == "NOPERM" || error.message.starts_with("ERR unknown command")
}
