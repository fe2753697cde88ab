//! Secrets that no output may ever contain: the Redis password and the API tokens.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The Redis user.
pub const USER: &str = "canary";

/// The Redis password.
pub const PASSWORD: &str = "canary-8d41f0-redis-password";

/// The check token.
pub const CHECK_TOKEN: &str = "canary-8d41f0-may-ask-4b7c19e2a6";

/// The read token.
pub const READ_TOKEN: &str = "canary-8d41f0-may-look-93ad06f751";

/// The admin token.
pub const ADMIN_TOKEN: &str = "canary-8d41f0-may-change-c5e81b2047";

/// A wrong token, one character off. No output may contain it either.
pub const WRONG_TOKEN: &str = "canary-8d41f0-may-change-c5e81b2048";

/// The tokens of every node, by environment variable.
pub const TOKENS: [(&str, &str); 3] = [
    ("TOLLGATE_CHECK_TOKEN", CHECK_TOKEN),
    ("TOLLGATE_READ_TOKEN", READ_TOKEN),
    ("TOLLGATE_ADMIN_TOKEN", ADMIN_TOKEN),
];

/// The common prefix of all secrets.
const PREFIX: &str = "canary-8d41f0";

/// Returns whether a text contains a secret.
pub fn contains_secret(text: &str) -> bool {
    text.contains(PREFIX)
}

/// The token for a path.
pub fn token_for(path: &str) -> &'static str {
    match path {
        path if path.starts_with("/admin/") => ADMIN_TOKEN,
        path if path.starts_with("/api/") => READ_TOKEN,
        _ => CHECK_TOKEN,
    }
}

/// The login part of a Redis URL.
pub fn login() -> String {
    format!("{USER}:{PASSWORD}@")
}

/// How a URL with a login is displayed.
const HIDDEN: &str = "***@";

/// The output of all nodes of a row: logs, metrics, responses.
#[derive(Debug, Default, Clone)]
pub struct Witness(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    /// Whether any node has the password.
    has_password: bool,
    /// Whether any node has the tokens.
    has_tokens: bool,
    /// Whether a node was seen to accept the right token and refuse a wrong one.
    has_checked_tokens: bool,
    all: Vec<Output>,
}

#[derive(Debug)]
struct Output {
    origin: String,
    text: String,
}

impl Witness {
    /// Records that a node has the password.
    pub fn expect_secrets(&self) {
        self.lock().has_password = true;
    }

    /// Records that a node has the tokens.
    pub fn expect_tokens(&self) {
        self.lock().has_tokens = true;
    }

    /// Records that a node accepted the right token and refused a wrong one.
    pub fn tokens_checked(&self) {
        self.lock().has_checked_tokens = true;
    }

    /// Records output and its origin.
    pub fn record(&self, origin: &str, text: String) {
        self.lock().all.push(Output { origin: origin.to_owned(), text });
    }

    /// Returns where a secret appears, if anywhere. Also fails if no node was seen to use the secrets, because then
    /// the search proves nothing.
    pub fn leak(&self) -> Option<String> {
        let recorded = self.lock();
        let is_seen = recorded.all.iter().any(|output| output.text.contains(HIDDEN));
        if recorded.has_password && !is_seen {
            return Some(
                "no node was seen to use the password, so the search proves nothing".to_owned(),
            );
        }
        if recorded.has_tokens && !recorded.has_checked_tokens {
            return Some(
                "no node was seen to check the tokens, so the search proves nothing".to_owned(),
            );
        }
        let leak = recorded.all.iter().find(|output| contains_secret(&output.text));
        leak.map(|output| format!("a secret appears in {}: {}", output.origin, line(&output.text)))
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The line that contains a secret.
fn line(text: &str) -> &str {
    text.lines().find(|line| contains_secret(line)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{PASSWORD, TOKENS, WRONG_TOKEN, Witness, contains_secret};

    #[test]
    fn finds_a_password_in_recorded_output() {
        let witness = Witness::default();
        assert_eq!(witness.leak(), None, "no node has the password");
        witness.expect_secrets();
        assert!(witness.leak().is_some(), "no output proves nothing");
        witness.record("a log", "no secret here".to_owned());
        assert!(witness.leak().is_some(), "no node was seen to use it");
        witness.record("a log", "redis://***@host".to_owned());
        assert_eq!(witness.leak(), None);
        witness.record("a log", format!("one line\nredis://canary:{PASSWORD}@host\n"));
        assert!(witness.leak().is_some_and(|text| text.contains("a log")));
    }

    #[test]
    fn finds_a_token_in_recorded_output() {
        for (variable, token) in TOKENS {
            let witness = Witness::default();
            witness.expect_tokens();
            assert!(witness.leak().is_some(), "no node was seen to use it");
            witness.tokens_checked();
            assert_eq!(witness.leak(), None);
            witness.record("/metrics", format!("one line\n{variable}={token}\n"));
            assert!(witness.leak().is_some_and(|text| text.contains("/metrics")));
        }
    }

    #[test]
    fn finds_secrets_in_lower_case_headers() {
        // Headers are compared in lower case.
        for secret in TOKENS.map(|(_, token)| token).into_iter().chain([PASSWORD, WRONG_TOKEN]) {
            assert!(contains_secret(&secret.to_ascii_lowercase()), "{secret}");
        }
    }
}
