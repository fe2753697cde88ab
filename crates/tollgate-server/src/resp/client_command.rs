//! `CLIENT …`: names and describes this connection.

use super::decode::Arguments;
use super::encode::{Replies, Version};
use super::error_reply::{ErrorReply, MAX_QUOTED, quoted};
use super::session::Session;

/// Maximum length of a name that a client sets, in bytes.
const MAX_NAME: usize = 256;

const OK: &str = "OK";
const SYNTAX_ERROR: ErrorReply = ErrorReply::fixed("ERR syntax error");
const NO_REPLY_MODES: ErrorReply =
    ErrorReply::fixed("ERR CLIENT REPLY is not supported: every command has a reply");

const HELP: [&str; 11] = [
    "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GETNAME",
    "    Return the name of this connection.",
    "ID",
    "    Return the id of this connection.",
    "INFO, LIST",
    "    Describe this connection. Other connections are not listed.",
    "NO-EVICT, NO-TOUCH (ON|OFF)",
    "    Accepted without effect.",
    "SETNAME <name>, SETINFO (LIB-NAME|LIB-VER) <value>",
    "    Name this connection and its library.",
];

/// Runs `CLIENT subcommand …`.
pub(super) fn run(
    arguments: &Arguments<'_>,
    session: &mut Session,
    replies: &mut Replies,
) -> Result<(), ErrorReply> {
    let subcommand = arguments.get(1).unwrap_or_default();
    let lower = String::from_utf8_lossy(subcommand).to_ascii_lowercase();
    let ensure_count = |count: usize| match arguments.len() == count {
        true => Ok(()),
        false => Err(ErrorReply::wrong_arity(&format!("client|{lower}"))),
    };
    let value = arguments.get(2).unwrap_or_default();
    match &*lower {
        "id" => {
            ensure_count(2)?;
            replies.integer(session.id);
        }
        "getname" => {
            ensure_count(2)?;
            if session.name.is_empty() { replies.null() } else { replies.bulk(&session.name) }
        }
        "setname" => {
            ensure_count(3)?;
            session.name = read_name(value, "Client names")?;
            replies.status(OK);
        }
        "setinfo" => {
            ensure_count(4)?;
            set_info(value, arguments.get(3).unwrap_or_default(), session)?;
            replies.status(OK);
        }
        "info" => {
            ensure_count(2)?;
            let line = describe(session, replies.version(), "client|info");
            replies.verbatim(&line);
        }
        "list" => {
            let line = describe(session, replies.version(), "client|list");
            replies.verbatim(&line);
        }
        "no-evict" | "no-touch" => {
            ensure_count(3)?;
            if !value.eq_ignore_ascii_case(b"ON") && !value.eq_ignore_ascii_case(b"OFF") {
                return Err(SYNTAX_ERROR);
            }
            replies.status(OK);
        }
        "reply" => return Err(NO_REPLY_MODES),
        "help" => {
            ensure_count(2)?;
            replies.array(HELP.len());
            HELP.iter().for_each(|line| replies.status(line));
        }
        _ => return Err(ErrorReply::unknown_subcommand("client", subcommand)),
    }
    Ok(())
}

/// Validates a name: printable ASCII without spaces. `what` starts the error.
pub(super) fn read_name(name: &[u8], what: &str) -> Result<String, ErrorReply> {
    if name.len() > MAX_NAME {
        return Err(ErrorReply::new(format!("ERR {what} must be at most {MAX_NAME} bytes long.")));
    }
    match std::str::from_utf8(name) {
        Ok(text) if text.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(text.to_owned()),
        _ => Err(ErrorReply::new(format!(
            "ERR {what} cannot contain spaces, newlines or special characters."
        ))),
    }
}

fn set_info(option: &[u8], value: &[u8], session: &mut Session) -> Result<(), ErrorReply> {
    if option.eq_ignore_ascii_case(b"LIB-NAME") {
        session.library = read_name(value, "lib-name")?;
    } else if option.eq_ignore_ascii_case(b"LIB-VER") {
        session.library_version = read_name(value, "lib-ver")?;
    } else {
        let option = quoted(option, MAX_QUOTED);
        return Err(ErrorReply::new(format!("ERR Unrecognized option '{option}'")));
    }
    Ok(())
}

/// Returns the line of this connection in the format of CLIENT LIST.
fn describe(session: &Session, version: Version, command: &str) -> String {
    let Session { id, peer, name, library, library_version, .. } = session;
    let (age, user) = (session.opened.elapsed().as_secs(), session.user());
    let version = if version == Version::Resp3 { 3 } else { 2 };
    format!(
        "id={id} addr={peer} name={name} age={age} idle=0 flags=N db=0 sub=0 psub=0 multi=-1 cmd={command} user={user} \
         resp={version} lib-name={library} lib-ver={library_version}\n"
    )
}
