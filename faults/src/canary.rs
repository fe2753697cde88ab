//! A password that nothing of ours may ever show.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who we are to Redis.
pub const USER: &str = "keeper";

/// What nobody may hear.
pub const PASSWORD: &str = "canary-8d41f0-sings-when-told";

/// As it stands in an address.
pub fn login() -> String {
    format!("{USER}:{PASSWORD}@")
}

/// How an address is shown that has a login.
const HIDDEN: &str = "***@";

/// All that the nodes of one row said: their logs, their metrics, how they fare.
#[derive(Debug, Default, Clone)]
pub struct Witness(Arc<Mutex<Heard>>);

#[derive(Debug, Default)]
struct Heard {
    /// Whether any node was given the password: of those that have none nothing is asked.
    is_entrusted: bool,
    all: Vec<Told>,
}

#[derive(Debug)]
struct Told {
    by: String,
    text: String,
}

impl Witness {
    /// Remembers that a node is given the password.
    pub fn entrust(&self) {
        self.lock().is_entrusted = true;
    }

    /// Remembers what somebody said.
    pub fn hear(&self, by: &str, text: String) {
        self.lock().all.push(Told { by: by.to_owned(), text });
    }

    /// Where the password was shown, if anywhere; or that nobody who was given it was seen
    /// to have it, which proves nothing.
    pub fn complaint(&self) -> Option<String> {
        let heard = self.lock();
        let is_seen = heard.all.iter().any(|told| told.text.contains(HIDDEN));
        if heard.is_entrusted && !is_seen {
            return Some(
                "no node was seen to have the password, so nothing is known of it".to_owned(),
            );
        }
        let shown = heard.all.iter().find(|told| told.text.contains(PASSWORD));
        shown.map(|told| format!("the password is shown by {}: {}", told.by, line(&told.text)))
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The line that shows it.
fn line(text: &str) -> &str {
    text.lines().find(|line| line.contains(PASSWORD)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{PASSWORD, Witness};

    #[test]
    fn a_password_is_found_wherever_it_was_said() {
        let witness = Witness::default();
        assert_eq!(witness.complaint(), None, "nobody has it, so nobody can tell");
        witness.entrust();
        assert!(witness.complaint().is_some(), "silence is no proof");
        witness.hear("a log", "all is well".to_owned());
        assert!(witness.complaint().is_some(), "nobody had it");
        witness.hear("a log", "redis://***@host".to_owned());
        assert_eq!(witness.complaint(), None);
        witness.hear("a log", format!("one line\nredis://keeper:{PASSWORD}@host\n"));
        assert!(witness.complaint().is_some_and(|text| text.contains("a log")));
    }
}
