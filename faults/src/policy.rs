//! Policies that rows need.

use std::fmt;

/// What a rule says about a lost store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Each node goes on with its share.
    Local,
    /// Everybody passes.
    Allow,
    /// Nobody passes.
    Deny,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "local",
            Self::Allow => "allow",
            Self::Deny => "deny",
        })
    }
}

/// So much for each client. Windows are long, so that what is counted stays counted while a row lasts.
pub fn each(limit: &str, on_store_loss: Loss) -> String {
    format!(
        "version: 1\ndefaults: {{ limit: {limit}, algorithm: fixed_window, on_store_loss: {on_store_loss} }}\n"
    )
}

/// One rule for each answer to a lost store, on a path of its name, and more than enough for all else.
pub fn every_loss(limit: &str) -> String {
    let rule = |loss: Loss| {
        format!(
            "  - {{ name: {loss}, match: {{ path: /{loss} }}, limits: [{limit}], \
             algorithm: sliding_window, on_store_loss: {loss} }}\n"
        )
    };
    let rules: String = [Loss::Local, Loss::Allow, Loss::Deny].map(rule).concat();
    format!(
        "version: 1\ndefaults: {{ limit: 1000000000/h, algorithm: fixed_window }}\nrules:\n{rules}"
    )
}
