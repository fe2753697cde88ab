//! `COMMAND …`: describes the commands from their table.

use super::commands::{COMMANDS, CommandSpec, REDIS_VERSION};
use super::decode::Arguments;
use super::encode::Replies;
use super::error_reply::ErrorReply;

const HELP: [&str; 9] = [
    "COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "COUNT",
    "    Return the number of commands.",
    "DOCS [<command-name> ...]",
    "    Return documentation of commands.",
    "INFO [<command-name> ...]",
    "    Return details of commands.",
    "LIST",
    "    Return the names of all commands.",
];

/// Runs `COMMAND [subcommand …]`.
pub(super) fn run(arguments: &Arguments<'_>, replies: &mut Replies) -> Result<(), ErrorReply> {
    let Some(subcommand) = arguments.get(1) else {
        replies.array(COMMANDS.len());
        COMMANDS.iter().for_each(|spec| describe(spec, replies));
        return Ok(());
    };
    let lower = String::from_utf8_lossy(subcommand).to_ascii_lowercase();
    match &*lower {
        "count" => replies.integer(COMMANDS.len()),
        "list" => {
            replies.array(COMMANDS.len());
            COMMANDS.iter().for_each(|spec| replies.bulk(spec.name));
        }
        "info" if arguments.len() == 2 => {
            replies.array(COMMANDS.len());
            COMMANDS.iter().for_each(|spec| describe(spec, replies));
        }
        "info" => {
            replies.array(arguments.len().saturating_sub(2));
            for name in arguments.from(2) {
                match CommandSpec::find(name) {
                    Some(spec) => describe(spec, replies),
                    None => replies.null_array(),
                }
            }
        }
        "docs" if arguments.len() == 2 => {
            replies.map(COMMANDS.len());
            COMMANDS.iter().for_each(|spec| document(spec, replies));
        }
        "docs" => {
            let found = || arguments.from(2).filter_map(CommandSpec::find);
            replies.map(found().count());
            found().for_each(|spec| document(spec, replies));
        }
        "help" => {
            replies.array(HELP.len());
            HELP.iter().for_each(|line| replies.status(line));
        }
        _ => return Err(ErrorReply::unknown_subcommand("command", subcommand)),
    }
    Ok(())
}

/// Appends the ten fields of COMMAND INFO.
fn describe(spec: &CommandSpec, replies: &mut Replies) {
    replies.array(10);
    replies.bulk(spec.name);
    replies.integer(spec.arity);
    replies.set(spec.flags.len());
    spec.flags.iter().for_each(|flag| replies.status(flag));
    // The first key, the last key and the step between keys.
    for _ in 0..3 {
        replies.integer(spec.key);
    }
    // ACL categories, tips, key specifications and subcommands.
    replies.set(0);
    for _ in 0..3 {
        replies.array(0);
    }
}

/// Appends the name and the entry of COMMAND DOCS.
fn document(spec: &CommandSpec, replies: &mut Replies) {
    replies.bulk(spec.name);
    let fields = [("summary", spec.summary), ("since", REDIS_VERSION), ("group", spec.group)];
    replies.map(fields.len());
    for (name, value) in fields {
        replies.bulk(name);
        replies.bulk(value);
    }
}
