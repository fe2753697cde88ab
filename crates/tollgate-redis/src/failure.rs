//! How a call to Redis fails, and what it means that it did: whether the command may have run.

use thiserror::Error;
use tollgate::{StoreError, StoreErrorKind};

use crate::resp::ErrorReply;

/// How much of a server's own words a message repeats.
const WORDS: usize = 200;

/// How a call failed. One failure is told to every caller that waited for it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Failure {
    /// There was no connection: certainly nothing was sent.
    #[error("{0}")]
    Unreachable(String),
    /// The connection failed while the command was under way: it may have run.
    #[error("the connection to Redis was lost: {0}")]
    Lost(String),
    /// No reply in time: it may have run.
    #[error("Redis did not answer in time")]
    Timeout,
    /// Too many commands are waiting already: it was not sent.
    #[error("too many calls to Redis are waiting already")]
    Overloaded,
    /// The server answered this command with an error.
    #[error("Redis {}", explain(.0))]
    Refused(ErrorReply),
}

impl Failure {
    /// The error that a script tells of one plan among many.
    pub(crate) fn refused(text: &[u8]) -> Self {
        Self::Refused(ErrorReply::new(String::from_utf8_lossy(text).into_owned()))
    }

    /// An answer that none of our scripts gives.
    pub(crate) fn unexpected() -> Self {
        Self::Lost("it answered what nobody asked".to_owned())
    }

    /// Whether the server does not know the script, so that nothing has run.
    pub(crate) fn is_unknown_script(&self) -> bool {
        matches!(self, Self::Refused(error) if error.code == "NOSCRIPT")
    }

    /// Whether the server does not know the function, so that nothing has run.
    pub(crate) fn is_unknown_function(&self) -> bool {
        matches!(self, Self::Refused(error) if error.message.starts_with("ERR Function not found"))
    }

    /// Whether the server knows the library already.
    pub(crate) fn is_known_library(&self) -> bool {
        matches!(self, Self::Refused(error) if error.message.contains("already exists"))
    }

    /// Whether the server has no functions, or none for this user, so that nothing has run.
    pub(crate) fn is_without_functions(&self) -> bool {
        match self {
            Self::Refused(error) => {
                error.code == "NOPERM" || error.message.starts_with("ERR unknown command")
            }
            _ => false,
        }
    }

    /// Whether the server is a replica, so that nothing has run.
    pub(crate) fn is_read_only(&self) -> bool {
        matches!(self, Self::Refused(error) if code(error) == "READONLY")
    }

    /// What the users of a store are told.
    pub(crate) fn into_store_error(self) -> StoreError {
        let kind = match &self {
            Self::Timeout => StoreErrorKind::Timeout,
            Self::Refused(error) if matches!(code(error), "WRONGTYPE" | "INCOMPATIBLE") => {
                StoreErrorKind::Incompatible
            }
            Self::Unreachable(_) | Self::Lost(_) | Self::Overloaded | Self::Refused(_) => {
                StoreErrorKind::Unavailable
            }
        };
        StoreError::new(kind, self.to_string())
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        failure.into_store_error()
    }
}

/// The code of an error. Up to Redis 6 what fails within a script has it in the middle of a sentence.
fn code(error: &ErrorReply) -> &str {
    let in_script = error.message.strip_prefix("ERR Error running script");
    let is_code =
        |word: &&str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    in_script.and_then(|text| text.split([' ', '-']).find(is_code)).unwrap_or(&error.code)
}

/// What an operator should know of it.
fn explain(error: &ErrorReply) -> String {
    let explanation = match code(error) {
        "WRONGTYPE" => {
            return format!(
                "holds something else under a key of ours{}: is the key prefix shared?",
                key(error)
            );
        }
        "INCOMPATIBLE" => {
            return format!("holds a state that this version cannot read{}", key(error));
        }
        "LOADING" => "is still loading its data",
        "BUSY" => "is busy running somebody's script",
        "READONLY" => "is a read-only replica: the address must be that of the primary",
        "MASTERDOWN" => "is a replica that has lost its primary",
        "CLUSTERDOWN" => "belongs to a cluster that is down",
        "TRYAGAIN" => "is moving these keys to another node of its cluster",
        "MOVED" | "ASK" | "CROSSSLOT" => {
            "belongs to a cluster: the address must begin with redis+cluster://"
        }
        "OOM" => "is out of memory: it has reached maxmemory and may not evict",
        "MISCONF" => "refuses writes since it could not save to disk",
        "NOREPLICAS" => "refuses writes since too few replicas follow it",
        "NOAUTH" => "asks for a password",
        "WRONGPASS" => "refused the password",
        "NOPERM" => "does not let this user run what is needed (see its ACL)",
        _ => return format!("answered with an error: {}", words(&error.message)),
    };
    explanation.to_owned()
}

/// Where it was, if the script could tell.
fn key(error: &ErrorReply) -> String {
    let key = error.message.split_once("at key ");
    key.map_or_else(String::new, |(_, key)| format!(" at key {}", words(key)))
}

/// The server's own words, without the arguments that it may repeat, and in one line.
fn words(message: &str) -> String {
    let known = message.split(", with args").next().unwrap_or_default();
    known.chars().take(WORDS).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use tollgate::StoreErrorKind;

    use super::{ErrorReply, Failure};

    fn told(failure: Failure) -> (StoreErrorKind, String) {
        let error = failure.into_store_error();
        (error.kind(), error.to_string())
    }

    fn refused(message: &str) -> (StoreErrorKind, String) {
        told(Failure::Refused(ErrorReply::new(message.to_owned())))
    }

    #[test]
    fn a_failure_is_of_the_kind_that_tells_whether_it_may_have_run() {
        use StoreErrorKind::{Timeout, Unavailable};
        for (failure, kind) in [
            (Failure::Unreachable("x".to_owned()), Unavailable),
            (Failure::Lost("x".to_owned()), Unavailable),
            (Failure::Overloaded, Unavailable),
            (Failure::Timeout, Timeout),
        ] {
            assert_eq!(told(failure).0, kind);
        }
    }

    #[test]
    fn a_key_of_another_type_is_incompatible_also_within_a_script() {
        let plain = "WRONGTYPE Operation against a key holding the wrong kind of value";
        let old =
            "ERR Error running script (call to f_8c): @user_script:1: WRONGTYPE Operation against";
        for message in [plain, old] {
            assert_eq!(refused(message).0, StoreErrorKind::Incompatible, "{message}");
        }
        let full = "ERR Error running script (call to f_8c): @user_script:1: @user_script: 1: -OOM command";
        assert!(refused(full).1.contains("out of memory"));
    }

    #[test]
    fn refusals_are_explained() {
        for (message, word) in [
            ("LOADING Redis is loading the dataset in memory", "loading"),
            ("READONLY You can't write against a read only replica.", "primary"),
            ("OOM command not allowed when used memory > 'maxmemory'.", "maxmemory"),
            ("NOAUTH Authentication required.", "password"),
            ("NOPERM this user has no permissions to run the 'eval' command", "ACL"),
            ("MOVED 1 127.0.0.1:7001", "cluster"),
            ("TRYAGAIN Multiple keys request during rehashing of slot", "moving"),
            ("ERR something\u{7} new", "answered with an error: ERR something  new"),
        ] {
            let (kind, text) = refused(message);
            assert_eq!(kind, StoreErrorKind::Unavailable);
            assert!(text.contains(word), "{text}");
        }
    }

    #[test]
    fn arguments_and_long_lines_are_not_repeated() {
        let echo = "ERR unknown command 'EVALSHA', with args beginning with: 'hunter2'";
        assert!(refused(echo).1.ends_with("'EVALSHA'"));
        assert!(refused(&"x".repeat(10_000)).1.len() < 300);
    }
}
