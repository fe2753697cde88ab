//! What a cluster's node says when a call is not for it, or not now. All of these prove that it has not run.

use crate::address::Place;
use crate::failure::Failure;
use crate::slot::Slot;

/// What to do about a call that has not run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// The slot is elsewhere now.
    Moved { slot: Option<Slot>, to: Place },
    /// The slot is moving, and this key is there already.
    Ask { to: Place },
    /// Not yet: it is moving, loading, or without a leader. Worth another look at who has what.
    Later,
}

impl Redirect {
    /// None if the call may have run, or trying again would not help. `asked` is who said so: a node may not
    /// know its own host.
    pub(super) fn of(failure: &Failure, asked: &Place) -> Option<Self> {
        let error = match failure {
            Failure::Refused(error) => error,
            Failure::Unreachable(_) => return Some(Self::Later),
            Failure::Lost(_) | Failure::Timeout | Failure::Overloaded => return None,
        };
        let mut words = error.message.split(' ').skip(1);
        match error.code.as_str() {
            "MOVED" => {
                let slot = words.next()?.parse().ok().and_then(Slot::numbered);
                Some(Self::Moved { slot, to: place(words.next()?, asked)? })
            }
            "ASK" => Some(Self::Ask { to: place(words.nth(1)?, asked)? }),
            "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "READONLY" => Some(Self::Later),
            _ => None,
        }
    }
}

/// `host:port`; the host may hold colons, or be left out.
fn place(text: &str, asked: &Place) -> Option<Place> {
    let (host, port) = text.rsplit_once(':')?;
    let host = if host.is_empty() || host == "?" { &asked.host } else { host };
    Some(Place { host: host.to_owned(), port: port.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str, port: u16) -> Place {
        Place { host: host.to_owned(), port }
    }

    fn redirect(text: &str) -> Option<Redirect> {
        Redirect::of(&Failure::refused(text.as_bytes()), &at("here", 1))
    }

    #[test]
    fn redirections_are_read() {
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
    fn what_may_have_run_is_not_tried_again() {
        let asked = at("here", 1);
        for failure in [Failure::Timeout, Failure::Lost("cut".to_owned()), Failure::Overloaded] {
            assert_eq!(Redirect::of(&failure, &asked), None, "{failure:?}");
        }
        for text in ["OOM full", "ERR wrong", "MOVED", "MOVED 1 nowhere", "WRONGTYPE x"] {
            assert_eq!(redirect(text), None, "{text}");
        }
    }
}
