//! The settings file: the flags of `tollgate serve`, as YAML.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::SettingsError;
use crate::settings::args::{
    AtCapArg, AuthBodyArg, DistributedArg, GrpcHeadersArg, LogArg, ScriptingArg,
};

/// Contents of a settings file. The field names are those of the flags.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettingsFile {
    pub(super) http: Option<String>,
    pub(super) admin: Option<String>,
    pub(super) grpc: Option<String>,
    pub(super) grpc_headers: Option<GrpcHeadersArg>,
    pub(super) resp: Option<String>,
    pub(super) trusted_proxies: Option<String>,
    pub(super) auth_headers: Option<String>,
    pub(super) auth_body: Option<AuthBodyArg>,
    pub(super) policy: Option<PathBuf>,
    pub(super) redis: Option<String>,
    pub(super) redis_timeout_ms: Option<u64>,
    pub(super) redis_prefix: Option<String>,
    pub(super) scripting: Option<ScriptingArg>,
    pub(super) report_ms: Option<u64>,
    pub(super) node_lifetime_ms: Option<u64>,
    pub(super) breaker_failures: Option<u64>,
    pub(super) breaker_open_ms: Option<u64>,
    pub(super) probe_ms: Option<u64>,
    pub(super) distributed: Option<DistributedArg>,
    pub(super) require_redis: Option<bool>,
    pub(super) expected_nodes: Option<u64>,
    pub(super) data_dir: Option<PathBuf>,
    pub(super) discard_bad_state: Option<bool>,
    pub(super) node_id: Option<String>,
    pub(super) max_keys: Option<usize>,
    pub(super) at_cap: Option<AtCapArg>,
    pub(super) max_connections: Option<usize>,
    pub(super) drain_ms: Option<u64>,
    pub(super) allow_unprotected: Option<bool>,
    pub(super) allowed_hosts: Option<String>,
    pub(super) tls_cert: Option<PathBuf>,
    pub(super) tls_key: Option<PathBuf>,
    pub(super) tls_client_ca: Option<PathBuf>,
    pub(super) trace_decisions: Option<bool>,
    pub(crate) log_format: Option<LogArg>,
}

impl SettingsFile {
    /// Reads a settings file; without a path, all settings are unset.
    pub(crate) fn read(path: Option<&Path>) -> Result<Self, SettingsError> {
        let Some(path) = path else { return Ok(Self::default()) };
        let with_path = |reason: &dyn std::fmt::Display| {
            SettingsError::new("--config", format!("{}: {reason}", path.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|error| with_path(&error))?;
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        serde_saphyr::from_str(&text).map_err(|error| with_path(&describe(&error, &text)))
    }
}

/// Describes an error by line and field, without values, because one of them may be a password.
fn describe(error: &serde_saphyr::Error, text: &str) -> String {
    let message = error.without_snippet().to_string();
    let Some(location) = error.location() else {
        return "not a YAML mapping; write one setting per line, such as max_keys: 50000"
            .to_owned();
    };
    let line = usize::try_from(location.line()).unwrap_or(usize::MAX);
    let source = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let key = source.split(':').next().unwrap_or_default().trim();
    match message.split_once("unknown field") {
        Some((_, rest)) => {
            format!("line {line}: unknown field{}", rest.lines().next().unwrap_or(""))
        }
        None if key.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_') => {
            format!("line {line}: {key}: invalid or duplicate value")
        }
        None => format!("line {line}: not a setting; write NAME: VALUE, such as max_keys: 50000"),
    }
}
