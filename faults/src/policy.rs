//! Policies for the rows.

use std::fmt;

use crate::front_end::DOMAIN;

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

/// The source of the client in auth requests.
pub const FRONT_ENDS: &str = "facts: { client: [{ header: x-client }] }\n";

/// A rule for the clients of gRPC requests, which the default limit does not apply to.
pub fn grpc_rule(limit: &str, options: &str) -> String {
    format!(
        "  - {{ name: grpc, match: {{ facts: {{ domain: {DOMAIN} }} }}, per: [\"entry:client\"], limits: [{limit}]{options} }}\n"
    )
}

/// [`per_client`] for all front ends.
pub fn per_client_everywhere(limit: &str, on_store_loss: Loss) -> String {
    let options = format!(", algorithm: fixed_window, on_store_loss: {on_store_loss}");
    per_client(limit, on_store_loss) + FRONT_ENDS + "rules:\n" + &grpc_rule(limit, &options)
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
    let grpc_rule = |loss: Loss| {
        format!(
            "  - {{ name: grpc-{loss}, match: {{ facts: {{ domain: {DOMAIN}, \"entry:path\": /{loss} }} }}, \
             per: [\"entry:client\"], limits: [{limit}], algorithm: sliding_window, on_store_loss: {loss} }}\n"
        )
    };
    let losses = [Loss::Local, Loss::Allow, Loss::Deny];
    let rules = losses.map(rule).concat() + &losses.map(grpc_rule).concat();
    format!(
        "version: 1\ndefaults: {{ limit: 1000000000/h, algorithm: fixed_window }}\n{FRONT_ENDS}rules:\n{rules}"
    )
}
