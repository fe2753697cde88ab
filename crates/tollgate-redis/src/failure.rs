//! Failures of a call to Redis, distinguished by whether the command may have run.

use thiserror::Error;
use tollgate::{StoreError, StoreErrorKind};

use crate::resp::ErrorReply;

/// Maximum length of a server's error text in a message, in characters.
const MAX_SERVER_TEXT: usize = 200;

/// The failure of a call. All callers that waited for it receive a clone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Failure {
    /// There was no connection: nothing was sent.
    #[error("{0}")]
    Unreachable(String),
    /// The server rejects this client, or cannot be used, until a setting changes: nothing was sent.
    #[error("{0}")]
    Misconfigured(String),
    /// The connection was lost during the call: the command may have run.
    #[error("the connection to Redis was lost: {0}")]
    Lost(String),
    /// No reply in time: the command may have run.
    #[error("Redis did not reply in time")]
    Timeout,
    /// Too many commands are waiting: it was not sent.
    #[error("too many calls to Redis are waiting")]
    Overloaded,
    /// The caller withdrew the command before it was sent.
    #[error("the call to Redis was withdrawn before it was sent")]
    Withdrawn,
    /// The server returned an error for this command.
    #[error("Redis {}", explain(.0))]
    Refused(ErrorReply),
}

impl Failure {
    /// An error that a script returned for one plan of a batch.
    pub(crate) fn refused(text: &[u8]) -> Self {
        Self::Refused(ErrorReply::new(String::from_utf8_lossy(text).into_owned()))
    }

    /// A call outside of a Tokio runtime.
    pub(crate) fn no_runtime() -> Self {
        Self::Unreachable("calls to Redis need a Tokio runtime".to_owned())
    }

    /// A reply that no script of this store returns.
    pub(crate) fn unexpected() -> Self {
        Self::Lost("the server sent an unexpected reply".to_owned())
    }

    /// Returns the failure to report after two servers failed: a rejection, because it needs an operator, otherwise
    /// the later failure.
    pub(crate) fn then(self, later: Self) -> Self {
        match self {
            Self::Misconfigured(_) => self,
            _ => later,
        }
    }

    /// Whether the command was sent: a reply arrived, or none in time.
    pub(crate) const fn was_sent(&self) -> bool {
        match self {
            Self::Lost(_) | Self::Timeout | Self::Refused(_) => true,
            Self::Unreachable(_) | Self::Misconfigured(_) | Self::Overloaded | Self::Withdrawn => {
                false
            }
        }
    }

    /// Whether the server does not know the script, so that nothing has run.
    pub(crate) fn is_unknown_script(&self) -> bool {
        matches!(self, Self::Refused(error) if error.code == "NOSCRIPT")
    }

    /// Whether the server does not know the function, so that nothing has run.
    pub(crate) fn is_unknown_function(&self) -> bool {
        matches!(self, Self::Refused(error) if error.message.starts_with("ERR Function not found"))
    }

    /// Whether the server has loaded the library already.
    pub(crate) fn is_known_library(&self) -> bool {
        matches!(self, Self::Refused(error) if error.message.contains("already exists"))
    }

    /// Whether the server has no functions, or denies them to this user, so that nothing has run.
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

    /// Whether a cluster that is down refused the first write of a script, so that nothing was written.
    pub(crate) fn is_refused_write_of_cluster(&self) -> bool {
        const REASON: &str = "while the cluster is down";
        matches!(self, Self::Refused(error) if error.message.contains(REASON))
    }

    /// Converts to the error of the store.
    pub(crate) fn into_store_error(self) -> StoreError {
        let kind = match &self {
            Self::Timeout => StoreErrorKind::Timeout,
            Self::Refused(error) if matches!(code(error), "WRONGTYPE" | "INCOMPATIBLE") => {
                StoreErrorKind::Incompatible
            }
            Self::Refused(error) if matches!(code(error), "NOAUTH" | "WRONGPASS" | "NOPERM") => {
                StoreErrorKind::Misconfigured
            }
            Self::Misconfigured(_) => StoreErrorKind::Misconfigured,
            Self::Lost(_) => StoreErrorKind::Lost,
            Self::Overloaded | Self::Withdrawn => StoreErrorKind::Overloaded,
            Self::Unreachable(_) | Self::Refused(_) => StoreErrorKind::Unavailable,
        };
        StoreError::new(kind, self.to_string())
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        failure.into_store_error()
    }
}

/// Returns the error code. Up to Redis 6, the error of a script contains it in the middle of the text.
fn code(error: &ErrorReply) -> &str {
    let in_script = error.message.strip_prefix("ERR Error running script");
    let is_code =
        |word: &&str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    in_script.and_then(|text| text.split([' ', '-']).find(is_code)).unwrap_or(&error.code)
}

/// Whether the server sends this error only for some time, such as at its start or during a failover.
pub(crate) fn is_temporary(error: &ErrorReply) -> bool {
    matches!(code(error), "LOADING" | "BUSY" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN")
}

/// Describes an error reply to an operator.
pub(crate) fn explain(error: &ErrorReply) -> String {
    let explanation = match code(error) {
        "WRONGTYPE" => {
            return format!(
                "holds a value of another type{}: does another application use this key prefix?",
                key(error)
            );
        }
        "INCOMPATIBLE" => {
            return format!("holds a state that this version cannot read{}", key(error));
        }
        "LOADING" => "is still loading its data",
        "BUSY" => "is busy running a script",
        "READONLY" => "is a read-only replica: use the address of the primary",
        "MASTERDOWN" => "is a replica that has lost its primary",
        "CLUSTERDOWN" => "is a node of a cluster that is down",
        "TRYAGAIN" => "is moving these keys to another node of its cluster",
        "MOVED" | "ASK" | "CROSSSLOT" => "is a node of a cluster: use a redis+cluster:// address",
        "OOM" => "is out of memory: it has reached maxmemory and may not evict",
        "MISCONF" => "refuses writes because it could not save to disk",
        "NOREPLICAS" => "refuses writes because too few replicas are connected",
        "NOAUTH" => "requires a password",
        "WRONGPASS" => "refused the password",
        "NOPERM" => "does not permit this user to run a required command (see its ACL)",
        _ => return format!("returned an error: {}", server_text(&error.message)),
    };
    explanation.to_owned()
}

/// Returns the key of the error, if the script named it.
fn key(error: &ErrorReply) -> String {
    let key = error.message.split_once("at key ");
    key.map_or_else(String::new, |(_, key)| format!(" at key {}", server_text(key)))
}

/// Returns the server's text in one line, without repeated arguments.
fn server_text(message: &str) -> String {
    let known = message.split(", with args").next().unwrap_or_default();
    known.chars().take(MAX_SERVER_TEXT).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use tollgate::StoreErrorKind;

    use super::{ErrorReply, Failure};

    fn store_error(failure: Failure) -> (StoreErrorKind, String) {
        let error = failure.into_store_error();
        (error.kind(), error.to_string())
    }

    fn refused(message: &str) -> (StoreErrorKind, String) {
        store_error(Failure::Refused(ErrorReply::new(message.to_owned())))
    }

    #[test]
    fn failure_kind_shows_whether_it_may_have_run() {
        use StoreErrorKind::{Lost, Misconfigured, Overloaded, Timeout, Unavailable};
        for (failure, kind) in [
            (Failure::Unreachable("x".to_owned()), Unavailable),
            (Failure::Misconfigured("x".to_owned()), Misconfigured),
            (Failure::Lost("x".to_owned()), Lost),
            (Failure::Overloaded, Overloaded),
            (Failure::Withdrawn, Overloaded),
            (Failure::Timeout, Timeout),
        ] {
            assert_eq!(store_error(failure).0, kind);
        }
    }

    #[test]
    fn wrong_type_within_a_script_is_incompatible() {
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
    fn error_replies_are_explained() {
        for (message, word) in [
            ("LOADING Redis is loading the dataset in memory", "loading"),
            ("READONLY You can't write against a read only replica.", "primary"),
            ("OOM command not allowed when used memory > 'maxmemory'.", "maxmemory"),
            ("MOVED 1 127.0.0.1:7001", "cluster"),
            ("TRYAGAIN Multiple keys request during rehashing of slot", "moving"),
            ("ERR something\u{7} new", "returned an error: ERR something  new"),
        ] {
            let (kind, text) = refused(message);
            assert_eq!(kind, StoreErrorKind::Unavailable);
            assert!(text.contains(word), "{text}");
        }
    }

    #[test]
    fn rejected_client_is_misconfigured() {
        for (message, word) in [
            ("NOAUTH Authentication required.", "password"),
            ("WRONGPASS invalid username-password pair", "password"),
            ("NOPERM this user has no permissions to run the 'eval' command", "ACL"),
        ] {
            let (kind, text) = refused(message);
            assert_eq!(kind, StoreErrorKind::Misconfigured);
            assert!(text.contains(word), "{text}");
        }
    }

    #[test]
    fn rejection_is_reported_before_a_later_failure() {
        let rejected = Failure::Misconfigured("x".to_owned());
        assert_eq!(rejected.clone().then(Failure::Timeout), rejected);
        assert_eq!(Failure::Timeout.then(rejected.clone()), rejected);
        assert_eq!(Failure::Overloaded.then(Failure::Timeout), Failure::Timeout);
    }

    #[test]
    fn arguments_and_long_texts_are_not_repeated() {
        let echo = "ERR unknown command 'EVALSHA', with args beginning with: 'hunter2'";
        assert!(refused(echo).1.ends_with("'EVALSHA'"));
        assert!(refused(&"x".repeat(10_000)).1.len() < 300);
    }
}
