//! The table of commands: names, arity, and what COMMAND reports about them.

/// The version of Redis whose replies the built-in commands imitate. Clients use it to select features.
pub(super) const REDIS_VERSION: &str = "7.0.0";

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    CellThrottle,
    Throttle,
    Check,
    Peek,
    Refund,
    Release,
    Renew,
    Reserve,
    Settle,
    ResetClient,
    Auth,
    Client,
    Describe,
    Config,
    Echo,
    Hello,
    Info,
    Ping,
    Quit,
    Reset,
    Select,
}

/// A row of the table.
#[derive(Debug)]
pub(super) struct CommandSpec {
    pub(super) command: Command,
    /// The name, in lower case.
    pub(super) name: &'static str,
    /// The number of arguments with the name; negative if it is a minimum.
    pub(super) arity: i64,
    pub(super) flags: &'static [&'static str],
    /// Position of the key; 0 if there is none.
    pub(super) key: u8,
    pub(super) group: &'static str,
    pub(super) summary: &'static str,
}

const DECISION: &[&str] = &["write", "fast"];
const READ: &[&str] = &["readonly", "fast"];
const ADMIN: &[&str] = &["write", "admin"];
const CONNECTION: &[&str] = &["noscript", "loading", "stale", "fast"];
const BEFORE_AUTH: &[&str] = &["noscript", "loading", "stale", "fast", "no_auth"];

const fn ours(
    command: Command,
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    summary: &'static str,
) -> CommandSpec {
    let key = match command {
        Command::Release | Command::Renew | Command::Settle => 0,
        _ => 1,
    };
    CommandSpec { command, name, arity, flags, key, group: "rate-limit", summary }
}

const fn builtin(
    command: Command,
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    summary: &'static str,
) -> CommandSpec {
    CommandSpec { command, name, arity, flags, key: 0, group: "connection", summary }
}

/// All commands. The lookup is linear, so the most frequent ones come first.
pub(super) static COMMANDS: [CommandSpec; 21] = [
    ours(
        Command::CellThrottle,
        "cl.throttle",
        -5,
        DECISION,
        "Takes from a token bucket: key max_burst count period [quantity]",
    ),
    ours(
        Command::Throttle,
        "throttle",
        -5,
        DECISION,
        "As CL.THROTTLE, with the reply of throttlecrab",
    ),
    ours(
        Command::Check,
        "tollgate.check",
        -2,
        DECISION,
        "Decides by the policy and consumes quota: key|fact=value… [COST n | COST unit=n…]",
    ),
    ours(Command::Peek, "tollgate.peek", -2, READ, "As TOLLGATE.CHECK, without consuming quota"),
    ours(Command::Refund, "tollgate.refund", -2, DECISION, "Returns quota, never above full"),
    ours(
        Command::Release,
        "tollgate.release",
        2,
        DECISION,
        "Releases the slots of a permit, or cancels a reservation",
    ),
    ours(
        Command::Renew,
        "tollgate.renew",
        2,
        DECISION,
        "Renews the slots of a permit, or a reservation",
    ),
    ours(
        Command::Reserve,
        "tollgate.reserve",
        -2,
        DECISION,
        "As TOLLGATE.CHECK, for an estimate that is settled later: … [TTL ms] [ID id]",
    ),
    ours(
        Command::Settle,
        "tollgate.settle",
        -4,
        DECISION,
        "Settles a reservation with the amounts that were used: reservation COST unit=n…",
    ),
    ours(
        Command::ResetClient,
        "tollgate.reset",
        -2,
        ADMIN,
        "Resets all counters of a client; requires the admin token",
    ),
    builtin(Command::Ping, "ping", -1, CONNECTION, "Returns PONG or the argument"),
    builtin(Command::Echo, "echo", 2, CONNECTION, "Returns the argument"),
    builtin(Command::Auth, "auth", -2, BEFORE_AUTH, "Authenticates with a token"),
    builtin(Command::Hello, "hello", -1, BEFORE_AUTH, "Selects the protocol version"),
    builtin(Command::Client, "client", -2, CONNECTION, "Names and describes this connection"),
    builtin(Command::Describe, "command", -1, CONNECTION, "Describes the commands"),
    builtin(Command::Config, "config", -2, CONNECTION, "Returns settings that clients read"),
    builtin(Command::Info, "info", -1, CONNECTION, "Describes the server"),
    builtin(Command::Select, "select", 2, CONNECTION, "Accepts database 0"),
    builtin(Command::Quit, "quit", -1, BEFORE_AUTH, "Closes the connection"),
    builtin(Command::Reset, "reset", 1, BEFORE_AUTH, "Resets the state of the connection"),
];

impl CommandSpec {
    /// Returns the command of this name, in any case.
    pub(super) fn find(name: &[u8]) -> Option<&'static Self> {
        COMMANDS.iter().find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Returns whether a command may have `count` arguments, with its name.
    pub(super) fn accepts(&self, count: usize) -> bool {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        // These two report a wrong number of arguments themselves, in the words of redis-cell.
        matches!(self.command, Command::CellThrottle | Command::Throttle)
            || if self.arity < 0 { count >= -self.arity } else { count == self.arity }
    }

    /// Returns whether the command needs no authentication.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.command, Command::Auth | Command::Hello | Command::Quit | Command::Reset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_and_unique() {
        for (index, spec) in COMMANDS.iter().enumerate() {
            assert_eq!(spec.name, spec.name.to_ascii_lowercase());
            let upper = spec.name.to_ascii_uppercase();
            let found = CommandSpec::find(upper.as_bytes()).unwrap();
            assert!(std::ptr::eq(found, &COMMANDS[index]), "{}", spec.name);
            assert_eq!(spec.flags.contains(&"no_auth"), spec.is_open(), "{}", spec.name);
        }
        assert!(CommandSpec::find(b"get").is_none());
    }

    #[test]
    fn arity_counts_the_name() {
        let spec = |name: &str| CommandSpec::find(name.as_bytes()).unwrap();
        assert!(spec("echo").accepts(2) && !spec("echo").accepts(1) && !spec("echo").accepts(3));
        assert!(spec("ping").accepts(1) && spec("ping").accepts(9));
        assert!(spec("cl.throttle").accepts(1), "it reports a Cell error itself");
    }
}
