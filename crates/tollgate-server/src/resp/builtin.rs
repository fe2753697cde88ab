//! Commands about the connection, answered as Redis does: PING, ECHO, AUTH, HELLO, SELECT, CONFIG GET, QUIT, RESET.

use std::time::Instant;

use super::commands::{Command, REDIS_VERSION};
use super::decode::Arguments;
use super::encode::{Replies, Version};
use super::error_reply::{ErrorReply, MAX_QUOTED, quoted};
use super::numbers::parse_integer;
use super::session::Session;
use super::{client_command, command_docs, info};
use crate::api::Service;

/// Settings of Redis that clients read, with the values that fit this server. `redis-benchmark` prints them.
const SETTINGS: [(&str, &str); 4] =
    [("appendonly", "no"), ("databases", "1"), ("save", ""), ("timeout", "120")];

const CONFIG_HELP: [&str; 3] = [
    "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GET <name> [<name> ...]",
    "    Return settings; * returns all of them. They cannot be changed.",
];

const SYNTAX_ERROR: ErrorReply = ErrorReply::fixed("ERR syntax error");
const NOT_AN_INTEGER: ErrorReply = ErrorReply::fixed("ERR value is not an integer or out of range");
const HELLO_NEEDS_AUTH: ErrorReply = ErrorReply::fixed(
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> \
     option can be used to authenticate the client and select the RESP protocol version at the same time",
);

/// What to do after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Continue,
    /// Close the connection when the replies are sent.
    Close,
}

/// What the commands use and change.
#[derive(Debug)]
pub(super) struct BuiltinContext<'a> {
    pub(super) service: &'a Service,
    pub(super) session: &'a mut Session,
    pub(super) replies: &'a mut Replies,
    /// Start of this front end.
    pub(super) started: Instant,
}

/// Runs a command that decides nothing.
pub(super) fn run(
    command: Command,
    arguments: &Arguments<'_>,
    context: &mut BuiltinContext<'_>,
) -> Result<After, ErrorReply> {
    let replies = &mut *context.replies;
    match command {
        Command::Ping => ping(arguments, replies)?,
        Command::Echo => replies.bulk(arguments.get(1).unwrap_or_default()),
        Command::Auth => auth(arguments, context)?,
        Command::Hello => hello(arguments, context)?,
        Command::Select => select(arguments, replies)?,
        Command::Config => config(arguments, replies)?,
        Command::Client => client_command::run(arguments, context.session, replies)?,
        Command::Describe => command_docs::run(arguments, replies)?,
        Command::Info => info::run(arguments, context.started, replies),
        Command::Reset => {
            context.session.reset(context.service);
            replies.set_version(Version::Resp2);
            replies.status("RESET");
        }
        Command::Quit => {
            replies.status("OK");
            return Ok(After::Close);
        }
        // Decisions and TOLLGATE.RESET do not come here.
        _ => return Err(ErrorReply::unknown_command(arguments)),
    }
    Ok(After::Continue)
}

fn ping(arguments: &Arguments<'_>, replies: &mut Replies) -> Result<(), ErrorReply> {
    match (arguments.get(1), arguments.len()) {
        (None, _) => replies.status("PONG"),
        (Some(text), 2) => replies.bulk(text),
        _ => return Err(ErrorReply::wrong_arity("ping")),
    }
    Ok(())
}

fn auth(arguments: &Arguments<'_>, context: &mut BuiltinContext<'_>) -> Result<(), ErrorReply> {
    let (user, token) = match (arguments.get(1), arguments.get(2), arguments.len()) {
        (Some(token), None, _) => (None, token),
        (user @ Some(_), Some(token), 3) => (user, token),
        _ => return Err(SYNTAX_ERROR),
    };
    context.session.authenticate(context.service, user, token)?;
    context.replies.status("OK");
    Ok(())
}

fn hello(arguments: &Arguments<'_>, context: &mut BuiltinContext<'_>) -> Result<(), ErrorReply> {
    let version = arguments.get(1).map(read_version).transpose()?;
    let mut options = arguments.from(2);
    let (mut login, mut name) = (None, None);
    while let Some(option) = options.next() {
        let syntax_error = || {
            let option = quoted(option, MAX_QUOTED);
            ErrorReply::new(format!("ERR Syntax error in HELLO option '{option}'"))
        };
        if option.eq_ignore_ascii_case(b"AUTH") {
            let user = options.next().ok_or_else(syntax_error)?;
            login = Some((user, options.next().ok_or_else(syntax_error)?));
        } else if option.eq_ignore_ascii_case(b"SETNAME") {
            let text = options.next().ok_or_else(syntax_error)?;
            name = Some(client_command::read_name(text, "Client names")?);
        } else {
            return Err(syntax_error());
        }
    }
    if let Some((user, token)) = login {
        context.session.authenticate(context.service, Some(user), token)?;
    }
    if !context.session.is_authenticated() {
        context.session.note_unauthenticated(context.service);
        return Err(HELLO_NEEDS_AUTH);
    }
    if let Some(name) = name {
        context.session.name = name;
    }
    if let Some(version) = version {
        context.replies.set_version(version);
    }
    describe_server(context);
    Ok(())
}

fn read_version(text: &[u8]) -> Result<Version, ErrorReply> {
    match parse_integer(text) {
        Some(2) => Ok(Version::Resp2),
        Some(3) => Ok(Version::Resp3),
        Some(_) => Err(ErrorReply::fixed("NOPROTO unsupported protocol version")),
        None => Err(ErrorReply::fixed("ERR Protocol version is not an integer or out of range")),
    }
}

/// Appends the reply to HELLO.
fn describe_server(context: &mut BuiltinContext<'_>) {
    let replies = &mut *context.replies;
    let version: u8 = match replies.version() {
        Version::Resp2 => 2,
        Version::Resp3 => 3,
    };
    replies.map(7);
    for (name, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
        replies.bulk(name);
        replies.bulk(value);
    }
    replies.bulk("proto");
    replies.integer(version);
    replies.bulk("id");
    replies.integer(context.session.id);
    for (name, value) in [("mode", "standalone"), ("role", "master")] {
        replies.bulk(name);
        replies.bulk(value);
    }
    replies.bulk("modules");
    replies.array(0);
}

fn select(arguments: &Arguments<'_>, replies: &mut Replies) -> Result<(), ErrorReply> {
    match arguments.get(1).and_then(parse_integer) {
        Some(0) => replies.status("OK"),
        Some(_) => return Err(ErrorReply::fixed("ERR DB index is out of range")),
        None => return Err(NOT_AN_INTEGER),
    }
    Ok(())
}

fn config(arguments: &Arguments<'_>, replies: &mut Replies) -> Result<(), ErrorReply> {
    let subcommand = arguments.get(1).unwrap_or_default();
    if subcommand.eq_ignore_ascii_case(b"HELP") {
        replies.array(CONFIG_HELP.len());
        CONFIG_HELP.iter().for_each(|line| replies.status(line));
        return Ok(());
    }
    if !subcommand.eq_ignore_ascii_case(b"GET") {
        return Err(ErrorReply::unknown_subcommand("config", subcommand));
    }
    if arguments.len() < 3 {
        return Err(ErrorReply::wrong_arity("config|get"));
    }
    let is_wanted = |name: &str| {
        arguments
            .from(2)
            .any(|wanted| wanted == b"*" || wanted.eq_ignore_ascii_case(name.as_bytes()))
    };
    let found: Vec<_> = SETTINGS.iter().filter(|(name, _)| is_wanted(name)).collect();
    replies.map(found.len());
    for (name, value) in found {
        replies.bulk(name);
        replies.bulk(value);
    }
    Ok(())
}
