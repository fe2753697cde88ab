//! Arguments of `tollgate serve`: each is a flag, an environment variable and a key of the settings file.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use serde::Deserialize;
use tollgate::{AtCap, Distributed, HeaderStyle, RefusalStyle};
use tollgate_redis::Scripting;

/// Headings of the help, by topic.
const LISTENERS: &str = "Listeners";
const POLICY: &str = "Policy";
const FORWARD_AUTH: &str = "Forward auth";
const REDIS: &str = "Redis";
const NODE: &str = "Node";
const SECURITY: &str = "Security and TLS";
const TELEMETRY: &str = "Telemetry";

/// Arguments of `tollgate serve`. Precedence: flag, environment variable, settings file, default.
#[derive(Debug, Default, Args)]
pub(crate) struct ServeArgs {
    /// Address of the HTTP listener: HOST:PORT, or :PORT on 127.0.0.1; port 0 selects a free port, which is printed to
    /// stderr [default: 127.0.0.1:8080]
    #[arg(long, help_heading = LISTENERS, value_name = "ADDR", env = "TOLLGATE_HTTP")]
    pub(crate) http: Option<String>,
    /// Separate listener for the dashboard, /api and /admin, HOST:PORT or :PORT [default: same as --http]
    #[arg(long, help_heading = LISTENERS, value_name = "ADDR", env = "TOLLGATE_ADMIN")]
    pub(crate) admin: Option<String>,
    /// Listener for Envoy's rate limit service over gRPC, HOST:PORT or :PORT
    #[arg(long, help_heading = LISTENERS, value_name = "ADDR", env = "TOLLGATE_GRPC")]
    pub(crate) grpc: Option<String>,
    /// Style of the rate limit headers in replies over gRPC, which the proxy adds to responses [default: draft6]
    #[arg(long, help_heading = LISTENERS, value_name = "STYLE", env = "TOLLGATE_GRPC_HEADERS")]
    pub(crate) grpc_headers: Option<GrpcHeadersArg>,
    /// Listener for Redis clients (RESP), HOST:PORT or :PORT; port 0 selects a free port
    #[arg(long, help_heading = LISTENERS, value_name = "ADDR", env = "TOLLGATE_RESP")]
    pub(crate) resp: Option<String>,
    /// Maximum number of open connections of each listener; further ones wait to be accepted [default: 10000]
    #[arg(long, help_heading = LISTENERS, value_name = "N", env = "TOLLGATE_MAX_CONNECTIONS")]
    pub(crate) max_connections: Option<usize>,
    /// Time after SIGTERM during which new requests are still served [default: 500]
    #[arg(long, help_heading = LISTENERS, value_name = "MS", env = "TOLLGATE_DRAIN_MS")]
    pub(crate) drain_ms: Option<u64>,
    /// Policy file; reloaded when it changes and on SIGHUP
    #[arg(long, help_heading = POLICY, value_name = "FILE", env = "TOLLGATE_POLICY")]
    pub(crate) policy: Option<PathBuf>,
    /// Addresses and networks of proxies whose forwarding headers /auth accepts, separated by commas
    #[arg(long, help_heading = FORWARD_AUTH, value_name = "CIDR,…", env = "TOLLGATE_TRUSTED_PROXIES")]
    pub(crate) trusted_proxies: Option<String>,
    /// Styles of the rate limit headers of /auth: x-unix, x-delta, draft6, draft11 and provider, separated by commas, or
    /// none [default: x-unix]
    #[arg(long, help_heading = FORWARD_AUTH, value_name = "STYLE,…", env = "TOLLGATE_AUTH_HEADERS")]
    pub(crate) auth_headers: Option<String>,
    /// Style of the bodies of refusals by /auth [default: simple]
    #[arg(long, help_heading = FORWARD_AUTH, value_name = "STYLE", env = "TOLLGATE_AUTH_BODY")]
    pub(crate) auth_body: Option<AuthBodyArg>,
    /// Redis that holds the counters of all nodes [default: counters in memory]
    // The variable is read by `StoreChoice` and not by clap, because the flag may conflict with settings that
    // the variable may not conflict with.
    #[arg(
        long,
        help_heading = REDIS,
        value_name = "URL",
        long_help = "Redis that holds the counters of all nodes [default: counters in memory]. \
            Format: redis://[user[:password]@]host[:port][/database]; rediss:// for TLS, unix:// for a socket, \
            redis+cluster:// and redis+sentinel:// for several hosts \
            [env: TOLLGATE_REDIS, or TOLLGATE_REDIS_FILE for a file that contains the URL]"
    )]
    pub(crate) redis: Option<String>,
    /// Timeout of a Redis call [default: 100]
    #[arg(long, help_heading = REDIS, value_name = "MS", env = "TOLLGATE_REDIS_TIMEOUT_MS")]
    pub(crate) redis_timeout_ms: Option<u64>,
    /// Prefix of all keys in Redis; nodes with different prefixes share nothing [default: rl:]
    #[arg(long, help_heading = REDIS, value_name = "TEXT", env = "TOLLGATE_REDIS_PREFIX")]
    pub(crate) redis_prefix: Option<String>,
    /// How the Lua code is loaded into Redis [default: auto]
    #[arg(long, help_heading = REDIS, value_name = "HOW", env = "TOLLGATE_SCRIPTING")]
    pub(crate) scripting: Option<ScriptingArg>,
    /// Upper bound on the role of Redis, overriding the rules [default: on]
    #[arg(long, help_heading = REDIS, value_name = "HOW", env = "TOLLGATE_DISTRIBUTED")]
    pub(crate) distributed: Option<DistributedArg>,
    /// Exit if Redis is unavailable at the start, instead of starting in degraded mode
    #[arg(long, help_heading = REDIS, env = "TOLLGATE_REQUIRE_REDIS", num_args = 0..=1, require_equals = true, value_name = "BOOL")]
    #[arg(default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(crate) require_redis: Option<bool>,
    /// Consecutive Redis failures that open the breaker; while open, decisions are made without Redis [default: 5]
    #[arg(long, help_heading = REDIS, value_name = "N", env = "TOLLGATE_BREAKER_FAILURES")]
    pub(crate) breaker_failures: Option<u64>,
    /// Time that the breaker stays open, unless a probe succeeds earlier [default: 30000]
    #[arg(long, help_heading = REDIS, value_name = "MS", env = "TOLLGATE_BREAKER_OPEN_MS")]
    pub(crate) breaker_open_ms: Option<u64>,
    /// Approximate interval of Redis probes while the breaker is open [default: 1000]
    #[arg(long, help_heading = REDIS, value_name = "MS", env = "TOLLGATE_PROBE_MS")]
    pub(crate) probe_ms: Option<u64>,
    /// Id of this node [default: host name and port, or host name and process id if the port is 0]
    #[arg(long, help_heading = NODE, value_name = "ID", env = "TOLLGATE_NODE_ID")]
    pub(crate) node_id: Option<String>,
    /// Interval of the reports that this node sends to Redis [default: 1000]
    #[arg(long, help_heading = NODE, value_name = "MS", env = "TOLLGATE_REPORT_MS")]
    pub(crate) report_ms: Option<u64>,
    /// Time without a report after which a node counts as down [default: 30000]
    #[arg(long, help_heading = NODE, value_name = "MS", env = "TOLLGATE_NODE_LIFETIME_MS")]
    pub(crate) node_lifetime_ms: Option<u64>,
    /// Number of nodes that share the limits after a start without Redis, if --data-dir has no count [default: 1]
    #[arg(long, help_heading = NODE, value_name = "N", env = "TOLLGATE_EXPECTED_NODES")]
    pub(crate) expected_nodes: Option<u64>,
    /// Directory for data that survives a restart: the memory store or, with Redis, the last node count and overrides
    #[arg(long, help_heading = NODE, value_name = "DIR", env = "TOLLGATE_DATA_DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// If the saved counters cannot be read, rename the file and start with empty counters
    #[arg(long, help_heading = NODE, env = "TOLLGATE_DISCARD_BAD_STATE", num_args = 0..=1, require_equals = true, value_name = "BOOL")]
    #[arg(default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(crate) discard_bad_state: Option<bool>,
    /// Maximum number of keys in memory [default: 1000000]
    #[arg(long, help_heading = NODE, value_name = "N", env = "TOLLGATE_MAX_KEYS")]
    pub(crate) max_keys: Option<usize>,
    /// Decision for a new key when --max-keys is reached [default: allow]
    #[arg(long, help_heading = NODE, value_name = "WHAT", env = "TOLLGATE_AT_CAP")]
    pub(crate) at_cap: Option<AtCapArg>,
    /// Settings file: these flags as YAML, such as `max_keys: 50000`
    #[arg(long, help_heading = NODE, value_name = "FILE", env = "TOLLGATE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Allow a listener on a non-loopback address without a token
    #[arg(long, help_heading = SECURITY, env = "TOLLGATE_ALLOW_UNPROTECTED", num_args = 0..=1, require_equals = true, value_name = "BOOL")]
    #[arg(default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(crate) allow_unprotected: Option<bool>,
    /// Host names under which clients on this machine may use the dashboard, /api and /admin, separated by commas, besides
    /// addresses and names without a dot
    #[arg(long, help_heading = SECURITY, value_name = "HOST,…", env = "TOLLGATE_ALLOWED_HOSTS")]
    pub(crate) allowed_hosts: Option<String>,
    /// Serve HTTPS with this certificate chain (PEM); reloaded when it changes
    #[arg(long, help_heading = SECURITY, value_name = "FILE", env = "TOLLGATE_TLS_CERT")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM, without a passphrase)
    #[arg(long, help_heading = SECURITY, value_name = "FILE", env = "TOLLGATE_TLS_KEY")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Require a client certificate signed by one of these CAs (PEM)
    #[arg(long, help_heading = SECURITY, value_name = "FILE", env = "TOLLGATE_TLS_CLIENT_CA")]
    pub(crate) tls_client_ca: Option<PathBuf>,
    /// Trace every decision, not only those with a sampled trace context
    ///
    /// Requires `OTEL_EXPORTER_OTLP_ENDPOINT` and a build with the feature `otel`.
    #[arg(long, help_heading = TELEMETRY, env = "TOLLGATE_TRACE_DECISIONS", num_args = 0..=1, require_equals = true, value_name = "BOOL")]
    #[arg(default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(crate) trace_decisions: Option<bool>,
    /// Format of log lines [default: text]
    #[arg(long, help_heading = TELEMETRY, value_name = "FORMAT", env = "TOLLGATE_LOG_FORMAT")]
    pub(crate) log_format: Option<LogArg>,
}

/// Decision for a new key when the memory store is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AtCapArg {
    /// Allow the request without counting it
    Allow,
    /// Refuse the request
    Deny,
}

/// Style of the bodies of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuthBodyArg {
    /// Error code, message and seconds to wait
    Simple,
    /// Problem details (RFC 9457) with the exceeded limits
    Problem,
}

impl From<AuthBodyArg> for RefusalStyle {
    fn from(arg: AuthBodyArg) -> Self {
        match arg {
            AuthBodyArg::Simple => Self::Simple,
            AuthBodyArg::Problem => Self::Problem,
        }
    }
}

/// Style of the headers in gRPC responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::doc_markdown, reason = "shown as help, without backticks")]
pub(crate) enum GrpcHeadersArg {
    /// X-RateLimit-Limit, -Remaining, and -Reset as a Unix time
    XUnix,
    /// X-RateLimit-Limit, -Remaining, and -Reset in seconds from now
    XDelta,
    /// RateLimit-Limit, -Remaining and -Reset
    #[default]
    Draft6,
    /// RateLimit-Policy and RateLimit
    Draft11,
    /// X-RateLimit-Limit-Requests, -Remaining-Requests and -Reset-Requests, and the same for tokens
    Provider,
    /// No headers
    None,
}

impl GrpcHeadersArg {
    /// Returns the style; `None` for no headers.
    pub(super) const fn style(self) -> Option<HeaderStyle> {
        match self {
            Self::XUnix => Some(HeaderStyle::XUnix),
            Self::XDelta => Some(HeaderStyle::XDelta),
            Self::Draft6 => Some(HeaderStyle::Draft6),
            Self::Draft11 => Some(HeaderStyle::Draft11),
            Self::Provider => Some(HeaderStyle::Provider),
            Self::None => None,
        }
    }
}

/// Role of the shared store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DistributedArg {
    /// Redis decides
    On,
    /// Each node decides by the full limit; Redis is evaluated too, and differences are counted
    Shadow,
    /// Each node decides by the full limit, without Redis
    Off,
}

impl From<DistributedArg> for Distributed {
    fn from(arg: DistributedArg) -> Self {
        match arg {
            DistributedArg::On => Self::On,
            DistributedArg::Shadow => Self::Shadow,
            DistributedArg::Off => Self::Off,
        }
    }
}

/// How the Lua code is loaded into Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScriptingArg {
    /// As functions if Redis supports and permits them, otherwise as scripts
    Auto,
    /// As scripts
    Script,
    /// As functions; fail if that is not possible
    Function,
}

impl From<ScriptingArg> for Scripting {
    fn from(arg: ScriptingArg) -> Self {
        match arg {
            ScriptingArg::Auto => Self::Auto,
            ScriptingArg::Script => Self::Script,
            ScriptingArg::Function => Self::Function,
        }
    }
}

impl From<AtCapArg> for AtCap {
    fn from(arg: AtCapArg) -> Self {
        match arg {
            AtCapArg::Allow => Self::Allow,
            AtCapArg::Deny => Self::Deny,
        }
    }
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogArg {
    /// Readable text
    #[default]
    Text,
    /// One JSON object per line
    Json,
}
