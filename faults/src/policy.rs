//! Policies for the rows.

use std::fmt;

/// The `on_store_loss` of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Each node decides by its share.
    Local,
    /// Every request passes.
    Allow,
    /// No request passes.
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

/// One limit for each client. Windows are long, so that usage does not expire while a row runs.
pub fn per_client(limit: &str, on_store_loss: Loss) -> String {
    format!(
        "version: 1\ndefaults: {{ limit: {limit}, algorithm: fixed_window, on_store_loss: {on_store_loss} }}\n"
    )
}

/// One rule for each `on_store_loss`, on a path of its name, and a huge limit for everything else.
pub fn rule_per_loss(limit: &str) -> String {
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
