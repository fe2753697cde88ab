//! What can be typed.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use serde::Deserialize;
use tollgate::{AtCap, Distributed};
use tollgate_redis::Scripting;

use super::server_args::ServerArgs;
use super::stdout::say;
use super::{
    Exit, OverrideCommand, ResetArgs, TopArgs, admin, check, man, policy, serve, simulate, top,
};

/// A rate limiter that is exact under any concurrency, and says why and until when it refuses.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "\
Try it:
  tollgate serve
  curl --json '{\"key\":\"user:1\"}' localhost:8080/check")]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Answer checks over HTTP. No flag is needed: counters in memory, 100 a minute for each key
    #[command(after_help = "\
Tokens come from the environment alone, each also from the file that its twin with _FILE names:
  TOLLGATE_CHECK_TOKEN  for /check and what else decides
  TOLLGATE_READ_TOKEN   for /api and the dashboard
  TOLLGATE_ADMIN_TOKEN  for /admin, and to log in to change things; without it there is nothing to change")]
    Serve(Box<ServeArgs>),
    /// Ask a running service whether a key may pass, and take if so
    ///
    /// Where it wants a token, that is the one of `TOLLGATE_CHECK_TOKEN`, or of the file that `TOLLGATE_CHECK_TOKEN_FILE`
    /// names.
    ///
    /// Exit code 0: allowed. 1: refused. 2: the question was wrong. 3: no answer.
    Check(CheckArgs),
    /// Give clients limits of their own, and see and remove them (admin token)
    ///
    /// The token is that of `TOLLGATE_ADMIN_TOKEN`, or of the file that `TOLLGATE_ADMIN_TOKEN_FILE` names.
    /// Exit code 0: done. 1: the client has none. 2: the question or the token was wrong. 3: no answer.
    #[command(subcommand)]
    Override(OverrideCommand),
    /// Forget what a client has used (admin token)
    ///
    /// Exit code 0: done. 2: the question or the token was wrong. 3: no answer.
    Reset(ResetArgs),
    /// Watch a running service: what it allows and refuses, and whom (read token)
    ///
    /// The token is that of `TOLLGATE_READ_TOKEN`, or of the file that `TOLLGATE_READ_TOKEN_FILE` names; without, the
    /// admin token likewise. Where standard output is no terminal, a summary is printed, as by --once.
    /// Exit code 0: done. 2: the question or the token was wrong. 3: no answer.
    Top(TopArgs),
    /// Work with policy files
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Decide requests from JSON lines, on a clock that the lines set
    ///
    /// One request a line, as for /check, with `at_ms` or `at_us` since the start (without a time, that
    /// of the line before) and optionally `op`: check, peek, refund, reset, release or renew. Prints
    /// one answer a line; permits are called l1, l2, … A bad line is a problem with its `line`, and exit
    /// code 2 at the end.
    Simulate(SimulateArgs),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the man pages, one for each command
    Man {
        /// The directory to write them into; it is made if it is not there
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

/// Flag, else environment variable, else the settings file, else the default.
#[derive(Debug, Default, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen; port 0 picks one, and stderr says which [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR", env = "TOLLGATE_HTTP")]
    pub(crate) http: Option<String>,
    /// Serve the dashboard, /api and /admin on an address of their own, and no longer beside /check
    #[arg(long, value_name = "ADDR", env = "TOLLGATE_ADMIN")]
    pub(crate) admin: Option<String>,
    /// The policy file; it is read again when it changes and on SIGHUP
    #[arg(long, value_name = "FILE", env = "TOLLGATE_POLICY")]
    pub(crate) policy: Option<PathBuf>,
    /// A Redis that holds the counters, shared by all nodes; without one they are in memory
    // Read by hand and not by clap, because a flag may contradict other settings where its
    // environment twin may not.
    #[arg(
        long,
        value_name = "URL",
        long_help = "A Redis that holds the counters, shared by all nodes; without one they are in memory. \
            redis://[user[:password]@]host[:port][/database], rediss:// for TLS, unix:// for a socket, \
            redis+cluster:// and redis+sentinel:// with several hosts \
            [env: TOLLGATE_REDIS, or TOLLGATE_REDIS_FILE for a file that says it]"
    )]
    pub(crate) redis: Option<String>,
    /// How long to wait for an answer of Redis [default: 100]
    #[arg(long, value_name = "MS", env = "TOLLGATE_REDIS_TIMEOUT_MS")]
    pub(crate) redis_timeout_ms: Option<u64>,
    /// What every key in Redis begins with; nodes of another prefix share nothing [default: rl:]
    #[arg(long, value_name = "TEXT", env = "TOLLGATE_REDIS_PREFIX")]
    pub(crate) redis_prefix: Option<String>,
    /// How programs reach Redis [default: auto]
    #[arg(long, value_name = "HOW", env = "TOLLGATE_SCRIPTING")]
    pub(crate) scripting: Option<ScriptingArg>,
    /// How often this node says in Redis that it is up [default: 10000]
    #[arg(long, value_name = "MS", env = "TOLLGATE_HEARTBEAT_MS")]
    pub(crate) heartbeat_ms: Option<u64>,
    /// How long after it last said so a node counts as down [default: 30000]
    #[arg(long, value_name = "MS", env = "TOLLGATE_NODE_LIFETIME_MS")]
    pub(crate) node_lifetime_ms: Option<u64>,
    /// After how many failures in a row Redis is no longer asked [default: 5]
    #[arg(long, value_name = "N", env = "TOLLGATE_BREAKER_FAILURES")]
    pub(crate) breaker_failures: Option<u64>,
    /// For how long it is then not asked, unless a probe finds it back sooner [default: 30000]
    #[arg(long, value_name = "MS", env = "TOLLGATE_BREAKER_OPEN_MS")]
    pub(crate) breaker_open_ms: Option<u64>,
    /// How often a lost Redis is probed, about [default: 1000]
    #[arg(long, value_name = "MS", env = "TOLLGATE_PROBE_MS")]
    pub(crate) probe_ms: Option<u64>,
    /// How much Redis has to say at most, whatever rules say [default: on]
    #[arg(long, value_name = "HOW", env = "TOLLGATE_DISTRIBUTED")]
    pub(crate) distributed: Option<DistributedArg>,
    /// Keep counters here across restarts; not with Redis, which keeps them itself
    #[arg(long, value_name = "DIR", env = "TOLLGATE_DATA_DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// If the saved counters cannot be read, put them aside and start empty
    #[arg(long, env = "TOLLGATE_DISCARD_BAD_STATE", num_args = 0..=1, require_equals = true, value_name = "BOOL")]
    #[arg(default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(crate) discard_bad_state: Option<bool>,
    /// What this node is called [default: the host name and port, or process id where the port is 0]
    #[arg(long, value_name = "ID", env = "TOLLGATE_NODE_ID")]
    pub(crate) node_id: Option<String>,
    /// The most keys to hold in memory [default: 1000000]
    #[arg(long, value_name = "N", env = "TOLLGATE_MAX_KEYS")]
    pub(crate) max_keys: Option<usize>,
    /// What happens to a new key when that many are in use [default: allow]
    #[arg(long, value_name = "WHAT", env = "TOLLGATE_AT_CAP")]
    pub(crate) at_cap: Option<AtCapArg>,
    /// The most connections at once; more wait to be accepted [default: 10000]
    #[arg(long, value_name = "N", env = "TOLLGATE_MAX_CONNECTIONS")]
    pub(crate) max_connections: Option<usize>,
    /// After SIGTERM, how long new requests are still answered [default: 500]
    #[arg(long, value_name = "MS", env = "TOLLGATE_DRAIN_MS")]
    pub(crate) drain_ms: Option<u64>,
    /// Listen beyond loopback although nothing but the network protects it
    #[arg(long, env = "TOLLGATE_ALLOW_UNPROTECTED", num_args = 0..=1, require_equals = true, value_name = "BOOL")]
    #[arg(default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(crate) allow_unprotected: Option<bool>,
    /// Speak HTTPS by this certificate, in PEM with those it depends on; it is read again when it changes
    #[arg(long, value_name = "FILE", env = "TOLLGATE_TLS_CERT")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM without a passphrase
    #[arg(long, value_name = "FILE", env = "TOLLGATE_TLS_KEY")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Only let clients in that show a certificate of one of these CAs, in PEM
    #[arg(long, value_name = "FILE", env = "TOLLGATE_TLS_CLIENT_CA")]
    pub(crate) tls_client_ca: Option<PathBuf>,
    /// Trace every decision, not only those whose callers trace them
    ///
    /// Where `OTEL_EXPORTER_OTLP_ENDPOINT` says that there are traces, in a build that has them.
    #[arg(long, env = "TOLLGATE_TRACE_DECISIONS", num_args = 0..=1, require_equals = true, value_name = "BOOL")]
    #[arg(default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(crate) trace_decisions: Option<bool>,
    /// How log lines look; text by default
    #[arg(long, value_name = "FORMAT", env = "TOLLGATE_LOG_FORMAT")]
    pub(crate) log_format: Option<LogArg>,
    /// A settings file: these flags as YAML (`max_keys: 50000`)
    #[arg(long, value_name = "FILE", env = "TOLLGATE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

/// What happens to a new key when memory is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AtCapArg {
    /// It passes and is not remembered
    Allow,
    /// It is refused
    Deny,
}

/// How much a shared store has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DistributedArg {
    /// It decides
    On,
    /// This node decides by the whole limit; Redis is asked beside it, and differences are counted
    Shadow,
    /// This node decides by the whole limit
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

/// How programs reach Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScriptingArg {
    /// As functions where Redis has them and lets us load them, else as scripts
    Auto,
    /// As scripts
    Script,
    /// As functions, or not at all
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

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogArg {
    /// For people
    #[default]
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// A key, or facts such as client=c1 path=/search
    #[arg(required = true, value_name = "KEY|FACT=VALUE")]
    pub(crate) what: Vec<String>,
    /// How much to take; 0 only asks
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) cost: u64,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print the service's answer as it is
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Say whether a policy file is right, and where it is not
    Validate {
        /// The policy file
        file: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Say which rules of a policy file a request would meet, and why
    Explain {
        /// The policy file
        file: PathBuf,
        /// What is known of the request, such as client=c1 path=/search
        #[arg(required = true, value_name = "FACT=VALUE")]
        facts: Vec<String>,
        /// What the request costs
        #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
        cost: u64,
        /// Print the explanation as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON schema of policy files, for editors
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// The policy to decide by; without one, 100 a minute for each key
    #[arg(long, value_name = "FILE", env = "TOLLGATE_POLICY")]
    pub(crate) policy: Option<PathBuf>,
    /// A file of JSON lines; - is standard input
    #[arg(default_value = "-", value_name = "LINES")]
    pub(crate) lines: PathBuf,
}

/// Runs what was typed.
#[must_use]
pub fn run(cli: Cli) -> Exit {
    match cli.command {
        Command::Serve(args) => serve::run(*args),
        Command::Check(args) => check::run(&args),
        Command::Override(command) => admin::run(&command),
        Command::Reset(args) => admin::reset(&args),
        Command::Top(args) => top::run(&args),
        Command::Policy(command) => policy::run(&command),
        Command::Simulate(args) => simulate::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "tollgate", &mut script);
            say(&String::from_utf8_lossy(&script));
            Exit::Success
        }
        Command::Man { out } => man::run(Cli::command(), &out),
    }
}
