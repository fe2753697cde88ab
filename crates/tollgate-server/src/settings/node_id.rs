//! Node id.

use std::net::SocketAddr;

use crate::error::SettingsError;

/// Returns host name and port, so that two nodes on one machine differ.
pub(super) fn default_id(http: SocketAddr) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host.trim().chars().filter(|letter| is_id_letter(*letter)).collect();
    let host = if host.is_empty() { "node" } else { &host };
    match http.port() {
        0 => format!("{host}-{}", std::process::id()),
        port => format!("{host}-{port}"),
    }
}

/// Validates an id; the allowed characters need no escaping in keys, URLs or logs.
pub(super) fn valid_id(id: &str) -> Result<String, SettingsError> {
    if (1..=64).contains(&id.len()) && id.chars().all(is_id_letter) {
        return Ok(id.to_owned());
    }
    let prefix: String = id.chars().take(64).collect();
    let reason = format!("{prefix:?} is invalid; use 1 to 64 of the characters A-Z a-z 0-9 . _ -");
    Err(SettingsError::new("--node-id", reason))
}

fn is_id_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "._-".contains(letter)
}
