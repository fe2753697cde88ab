//! The first words on a connection: who we are, which database, and what the server is.
//!
//! Written at once, so that a new connection costs one round trip more. Of what is answered to a
//! login nothing is repeated: a server that does not know the command would quote the password.

use std::io;

use super::{Connection, ReadError, ServerInfo};
use crate::address::Login;
use crate::resp::{Command, ErrorReply, Reply};
use crate::target::{Endpoint, Target};

/// How long an answer to one of these may be: `INFO server` has about 1 kB.
const CAP: usize = 64 * 1024;

/// How a connection is called in `CLIENT LIST`.
const NAME: &str = "tollgate";

/// Says who we are. Fails with what to say of the server.
pub(super) async fn greet(
    connection: &mut Connection,
    target: &Target,
) -> Result<Option<ServerInfo>, String> {
    let database = target.database;
    let log_in = target.login.as_ref().map(auth);
    let select = (database != 0).then(|| Command::new("SELECT").number(u64::from(database)));
    let (has_login, has_database) = (log_in.is_some(), select.is_some());
    let name = Command::new("CLIENT").arg("SETNAME").arg(NAME);
    let info = Command::new("INFO").arg("server");
    let commands = [log_in, select, Some(name), Some(info)];
    // A server that refuses us says why and closes: that is worth more than what the write came to.
    let _ = connection.write(commands.into_iter().flatten()).await;

    if has_login && let Reply::Error(error) = read(connection, &target.endpoint).await? {
        return Err(login_refusal(&error));
    }
    if has_database && let Reply::Error(error) = read(connection, &target.endpoint).await? {
        return Err(refusal(&error, has_login, || format!("has no database {database}")));
    }
    if let Reply::Error(error) = read(connection, &target.endpoint).await?
        && let Some(why) = known_refusal(&error, has_login)
    {
        return Err(why);
    }
    match read(connection, &target.endpoint).await? {
        Reply::Bulk(info) => ServerInfo::parse(&info).map_or(Ok(None), ServerInfo::check),
        Reply::Error(error) if is_kept_from_us(&error) => Ok(None),
        Reply::Error(error) => {
            Err(refusal(&error, has_login, || format!("refused INFO: {}", error.code)))
        }
        _ => Err(NOT_REDIS.to_owned()),
    }
}

const NOT_REDIS: &str = "does not speak the Redis protocol";

fn auth(login: &Login) -> Command {
    let command = Command::new("AUTH");
    let command = match &login.user {
        Some(user) => command.arg(user.expose()),
        None => command,
    };
    command.arg(login.password.expose())
}

async fn read(connection: &mut Connection, endpoint: &Endpoint) -> Result<Reply, String> {
    connection.read(CAP).await.map_err(|error| match error {
        ReadError::Malformed(_) => NOT_REDIS.to_owned(),
        ReadError::Closed => format!("closed the connection at once{}", guess(endpoint)),
        ReadError::Failed(error) if error.kind() == io::ErrorKind::ConnectionReset => {
            format!("broke off the connection{}", guess(endpoint))
        }
        ReadError::Failed(error) => format!("broke off the connection: {error}"),
    })
}

/// Why a server may go without a word.
fn guess(endpoint: &Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Tcp(_) => ": is this a TLS port, which needs rediss://?",
        Endpoint::Tls(_, tls) if !tls.has_certificate() => {
            ": does it ask for a client certificate (cert and key)?"
        }
        Endpoint::Tls(..) | Endpoint::Unix(_) => "",
    }
}

fn login_refusal(error: &ErrorReply) -> String {
    if error.message.contains("without any password configured") {
        return "refused the password: it has none, and asks for none".to_owned();
    }
    refusal(error, true, || "refused the password".to_owned())
}

fn refusal(error: &ErrorReply, has_login: bool, otherwise: impl FnOnce() -> String) -> String {
    known_refusal(error, has_login).unwrap_or_else(otherwise)
}

/// Refusals that any command may meet.
fn known_refusal(error: &ErrorReply, has_login: bool) -> Option<String> {
    let why = match error.code.as_str() {
        "NOAUTH" if has_login => "refused the password",
        "NOAUTH" => "asks for a password, and its address has none",
        "DENIED" => "is in protected mode: it takes no connections from other machines",
        "ERR" if error.message.contains("max number of clients") => {
            "has as many clients as it takes (maxclients)"
        }
        _ => return None,
    };
    Some(why.to_owned())
}

/// Whether the server may be what it likes: we are not let ask.
fn is_kept_from_us(error: &ErrorReply) -> bool {
    error.code == "NOPERM" || error.message.starts_with("ERR unknown command")
}
