//! Secrets that nothing of ours may ever show: the password of Redis, and the tokens of those who ask.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who we are to Redis.
pub const USER: &str = "keeper";

/// What nobody may hear.
pub const PASSWORD: &str = "canary-8d41f0-sings-when-told";

/// By what questions are let in.
pub const CHECK_TOKEN: &str = "canary-8d41f0-may-ask-4b7c19e2a6";

/// By what lists are shown.
pub const READ_TOKEN: &str = "canary-8d41f0-may-look-93ad06f751";

/// By what things are changed.
pub const ADMIN_TOKEN: &str = "canary-8d41f0-may-change-c5e81b2047";

/// What nobody is let in by, and may not be repeated either: it is one letter off.
pub const WRONG_TOKEN: &str = "canary-8d41f0-may-change-c5e81b2048";

/// The tokens of every node, by the variables that they come in.
pub const TOKENS: [(&str, &str); 3] = [
    ("TOLLGATE_CHECK_TOKEN", CHECK_TOKEN),
    ("TOLLGATE_READ_TOKEN", READ_TOKEN),
    ("TOLLGATE_ADMIN_TOKEN", ADMIN_TOKEN),
];

/// How each of them begins: who shows nothing of this shows none.
const STEM: &str = "canary-8d41f0";

/// Whether a text shows any of them.
pub fn is_shown(text: &str) -> bool {
    text.contains(STEM)
}

/// What lets in where.
pub fn token_for(path: &str) -> &'static str {
    match path {
        path if path.starts_with("/admin/") => ADMIN_TOKEN,
        path if path.starts_with("/api/") => READ_TOKEN,
        _ => CHECK_TOKEN,
    }
}

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
    /// Whether any node was started with the tokens, and whether one was seen to go by them.
    is_guarded: bool,
    is_guard_seen: bool,
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

    /// Remembers that a node was started with the tokens.
    pub fn guard(&self) {
        self.lock().is_guarded = true;
    }

    /// Remembers that a node let in who has a token, and nobody else.
    pub fn see_guard(&self) {
        self.lock().is_guard_seen = true;
    }

    /// Remembers what somebody said.
    pub fn hear(&self, by: &str, text: String) {
        self.lock().all.push(Told { by: by.to_owned(), text });
    }

    /// Where a secret was shown, if anywhere; or that nobody who was given it was seen
    /// to have it, which proves nothing.
    pub fn complaint(&self) -> Option<String> {
        let heard = self.lock();
        let is_seen = heard.all.iter().any(|told| told.text.contains(HIDDEN));
        if heard.is_entrusted && !is_seen {
            return Some(
                "no node was seen to have the password, so nothing is known of it".to_owned(),
            );
        }
        if heard.is_guarded && !heard.is_guard_seen {
            return Some(
                "no node was seen to have the tokens, so nothing is known of them".to_owned(),
            );
        }
        let shown = heard.all.iter().find(|told| is_shown(&told.text));
        shown.map(|told| format!("a secret is shown by {}: {}", told.by, line(&told.text)))
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The line that shows it.
fn line(text: &str) -> &str {
    text.lines().find(|line| is_shown(line)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{PASSWORD, TOKENS, WRONG_TOKEN, Witness, is_shown};

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

    #[test]
    fn a_token_is_found_wherever_it_was_said() {
        for (variable, token) in TOKENS {
            let witness = Witness::default();
            witness.guard();
            assert!(witness.complaint().is_some(), "nobody had it");
            witness.see_guard();
            assert_eq!(witness.complaint(), None);
            witness.hear("/metrics", format!("one line\n{variable}={token}\n"));
            assert!(witness.complaint().is_some_and(|text| text.contains("/metrics")));
        }
    }

    #[test]
    fn every_secret_is_known_in_heads_too() {
        // Heads are read in small letters.
        for secret in TOKENS.map(|(_, token)| token).into_iter().chain([PASSWORD, WRONG_TOKEN]) {
            assert!(is_shown(&secret.to_ascii_lowercase()), "{secret}");
        }
    }
}
