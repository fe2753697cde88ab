//! Replies of a cluster node that cannot run a call. All of them prove that the call has not run.

use crate::address::HostPort;
use crate::failure::Failure;
use crate::slot::Slot;

/// The next action for a call that has not run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// The slot belongs to another node.
    Moved { slot: Option<Slot>, to: HostPort },
    /// The slot is migrating, and the other node has the key.
    Ask { to: HostPort },
    /// The slot is migrating, the node is loading, or the slot has no primary. Retry after a topology refresh.
    Later,
}

impl Redirect {
    /// Returns `None` if the call may have run or a retry does not help. A node may not know its own host; then it
    /// is the host of the `sender`.
    pub(super) fn of(failure: &Failure, sender: &HostPort) -> Option<Self> {
        let error = match failure {
            Failure::Refused(error) => error,
            Failure::Unreachable(_) | Failure::Misconfigured(_) => return Some(Self::Later),
            Failure::Lost(_) | Failure::Timeout | Failure::Overloaded | Failure::Withdrawn => {
                return None;
            }
        };
        let mut words = error.message.split(' ').skip(1);
        match error.code.as_str() {
            "MOVED" => {
                let slot = words.next()?.parse().ok().and_then(Slot::numbered);
                Some(Self::Moved { slot, to: parse_host_port(words.next()?, sender)? })
            }
            "ASK" => Some(Self::Ask { to: parse_host_port(words.nth(1)?, sender)? }),
            "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "READONLY" => Some(Self::Later),
            _ => None,
        }
    }

    /// Returns the failure of a call that nodes redirect to each other.
    pub(super) fn explain_excess(failure: Failure) -> Failure {
        match &failure {
            Failure::Refused(error) if matches!(error.code.as_str(), "MOVED" | "ASK") => {
                let slot = error.message.split(' ').nth(1).unwrap_or_default();
                Failure::Unreachable(format!(
                    "the nodes of the Redis cluster disagree about which of them has slot {slot}"
                ))
            }
            _ => failure,
        }
    }
}

/// Parses `host:port`. The host may contain colons or be empty.
fn parse_host_port(text: &str, sender: &HostPort) -> Option<HostPort> {
    let (host, port) = text.rsplit_once(':')?;
    let host = if host.is_empty() || host == "?" { &sender.host } else { host };
    Some(HostPort { host: host.to_owned(), port: port.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str, port: u16) -> HostPort {
        HostPort { host: host.to_owned(), port }
    }

    fn redirect(text: &str) -> Option<Redirect> {
        Redirect::of(&Failure::refused(text.as_bytes()), &at("here", 1))
    }

    #[test]
    fn redirections_are_parsed() {
        let moved = |to| Some(Redirect::Moved { slot: Slot::numbered(3999), to });
        assert_eq!(redirect("MOVED 3999 10.0.0.1:6381"), moved(at("10.0.0.1", 6381)));
        assert_eq!(redirect("MOVED 3999 :6381"), moved(at("here", 6381)));
        assert_eq!(redirect("MOVED 3999 ::1:6381"), moved(at("::1", 6381)));
        assert_eq!(
            redirect("ASK 3999 node-2:6381"),
            Some(Redirect::Ask { to: at("node-2", 6381) })
        );
        assert_eq!(redirect("TRYAGAIN Multiple keys"), Some(Redirect::Later));
    }

    #[test]
    fn calls_that_may_have_run_are_not_retried() {
        let sender = at("here", 1);
        for failure in [Failure::Timeout, Failure::Lost("cut".to_owned()), Failure::Overloaded] {
            assert_eq!(Redirect::of(&failure, &sender), None, "{failure:?}");
        }
        for text in ["OOM full", "ERR wrong", "MOVED", "MOVED 1 nowhere", "WRONGTYPE x"] {
            assert_eq!(redirect(text), None, "{text}");
        }
    }
}
