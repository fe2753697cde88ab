//! Arguments of all commands, and their dispatch.

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use super::failure::set_json;
use super::reservation_args::{ReserveArgs, SettleArgs};
use super::server_args::ServerArgs;
use super::stdout::print;
use super::{
    Exit, OverrideCommand, ReplayArgs, ResetArgs, SuggestArgs, TopArgs, admin, check, man, policy,
    replay, reservation, serve, simulate, top,
};
use crate::serve::FrontEnd;
use crate::settings::args::ServeArgs;
use crate::wire::costs::Amount;

/// Distributed rate limiter: exact under concurrency; every refusal names the rule and the retry time
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "\
With --json, a failure is also one JSON object on standard output: {\"error\":{\"kind\",\"message\",\"exit_code\"}},
with kind usage, not_found or no_response, and the response of the service if there is one.

Try it:
  tollgate serve
  curl --json '{\"key\":\"user:1\"}' localhost:8080/check")]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service. Without flags: counters in memory, 100 requests per minute and key
    #[command(after_help = "\
Tokens are read from the environment only. Each variable also exists with the suffix _FILE, which names a file:
  TOLLGATE_CHECK_TOKEN  protects /check and the other decision endpoints
  TOLLGATE_READ_TOKEN   protects /api and the dashboard
  TOLLGATE_ADMIN_TOKEN  protects /admin and changes in the dashboard; without it, both are disabled")]
    Serve(Box<ServeArgs>),
    /// Check a request against a running service and consume quota if it is allowed
    ///
    /// If the service requires a token, it is read from `TOLLGATE_CHECK_TOKEN`, or from the file that
    /// `TOLLGATE_CHECK_TOKEN_FILE` names.
    ///
    /// Exit code 0: allowed. 1: refused. 2: invalid input or token. 3: no response from the service.
    Check(CheckArgs),
    /// Reserve an estimate, which counts until `tollgate settle` replaces it by the amounts that were used
    ///
    /// Prints the reservation in the first line. If the service requires a token, it is read from `TOLLGATE_CHECK_TOKEN`,
    /// or from the file that `TOLLGATE_CHECK_TOKEN_FILE` names.
    ///
    /// Exit code 0: reserved. 1: refused. 2: invalid input or token. 3: no response from the service.
    Reserve(ReserveArgs),
    /// Settle a reservation with the amounts that were used
    ///
    /// Returns the part of the estimate that was not used, or charges what was used more. Only the first settlement counts;
    /// a repeated one prints its outcome. If the service requires a token, it is read from `TOLLGATE_CHECK_TOKEN`, or from
    /// the file that `TOLLGATE_CHECK_TOKEN_FILE` names.
    ///
    /// Exit code 0: settled, now or before. 1: the reservation is unknown. 2: invalid input or token. 3: no response from
    /// the service.
    Settle(SettleArgs),
    /// Set, show and remove per-client limits (requires the admin token)
    ///
    /// The token is read from `TOLLGATE_ADMIN_TOKEN`, or from the file that `TOLLGATE_ADMIN_TOKEN_FILE` names.
    ///
    /// Exit code 0: success. 1: the client has no override. 2: invalid input or token. 3: no response from the service.
    #[command(subcommand)]
    Override(OverrideCommand),
    /// Reset the usage of a client (requires the admin token)
    ///
    /// The token is read from `TOLLGATE_ADMIN_TOKEN`, or from the file that `TOLLGATE_ADMIN_TOKEN_FILE` names.
    ///
    /// Exit code 0: success. 2: invalid input or token. 3: no response from the service.
    Reset(ResetArgs),
    /// Show live traffic, refused keys, nodes and rules of a running service
    ///
    /// If the service requires a token, it is read from `TOLLGATE_READ_TOKEN` or the file that `TOLLGATE_READ_TOKEN_FILE`
    /// names, else from `TOLLGATE_ADMIN_TOKEN` or `TOLLGATE_ADMIN_TOKEN_FILE`. If standard output is not a terminal, a
    /// summary is printed, as with --once.
    ///
    /// Exit code 0: success. 2: invalid input or token. 3: no response from the service.
    Top(TopArgs),
    /// Validate, explain and import policy files
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Report which requests of access logs a policy would have refused
    ///
    /// Runs the code of the server on the log's clock. Formats: common, combined, combined with X-Forwarded-For, nginx
    /// JSON, and JSON lines with `time`, `ip`, `method` and `path`. Also reports, for each limit, the smallest count that
    /// would have refused at most 0.1 % and 1 % of its requests.
    ///
    /// Exit code 0: success, also if lines were skipped. 2: invalid arguments, a file that cannot be read, an unknown
    /// format, or an invalid policy.
    Replay(ReplayArgs),
    /// Decide requests from JSON lines on a simulated clock
    ///
    /// Each line is one request, as for /check, with the time `at_ms` or `at_us` since the start (default: the time of the
    /// previous line) and optionally `op`: check, peek, refund, reset, reserve, settle, release or renew. One response is
    /// printed per line; permits and reservations are named l1, l2, … For an invalid line a problem with its `line` number is printed, and the
    /// exit code is 2.
    Simulate(SimulateArgs),
    /// Print shell completions
    Completions {
        /// Shell to print completions for
        shell: Shell,
    },
    /// Write the man pages, one per command
    Man {
        /// Directory for the pages; created if it does not exist
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

impl Command {
    /// Returns whether the command prints JSON (`--json`).
    const fn is_json(&self) -> bool {
        match self {
            Self::Check(args) => args.json,
            Self::Reserve(args) => args.json,
            Self::Settle(args) => args.json,
            Self::Override(command) => command.is_json(),
            Self::Top(args) => args.json,
            Self::Policy(PolicyCommand::Validate { json, .. })
            | Self::Policy(PolicyCommand::Explain { json, .. }) => *json,
            Self::Replay(args) => args.json,
            _ => false,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// A key, or facts such as client=c1 path=/search
    #[arg(required = true, value_name = "KEY|FACT=VALUE")]
    pub(crate) key_or_facts: Vec<String>,
    /// Cost in requests, or of a unit, such as tokens=1800 (repeatable; other units cost 0); 0 does not use quota
    /// [default: 1]
    #[arg(long, value_name = "N|UNIT=N", value_parser = Amount::parse, allow_negative_numbers = true)]
    pub(crate) cost: Vec<Amount>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print the response of the service as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Validate policy files and report each error with its line
    ///
    /// Each error is printed with file, line and column, with the source line, and with a mark below the wrong part. Lines
    /// that can contain API keys are not shown.
    ///
    /// Exit code 0: all files are valid. 2: a file is invalid or cannot be read.
    Validate {
        /// Policy files; - is standard input
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Print the results as JSON, one object per file
        #[arg(long)]
        json: bool,
    },
    /// Explain which rules of a policy file match a request, and why
    Explain {
        /// Policy file
        file: PathBuf,
        /// Facts of the request, such as client=c1 path=/search
        #[arg(required = true, value_name = "FACT=VALUE")]
        facts: Vec<String>,
        /// Cost in requests, or of a unit, such as tokens=1800 (repeatable; other units cost 0) [default: 1]
        #[arg(long, value_name = "N|UNIT=N", value_parser = Amount::parse, allow_negative_numbers = true)]
        cost: Vec<Amount>,
        /// Print the explanation as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of policy files, for editors
    Schema,
    /// Convert the configuration of another rate limiter to a policy that decides identically
    ///
    /// The policy is printed to standard output. Several files become one policy; each domain or namespace must be in one
    /// file only. A configuration that a policy cannot express is an error with its file and line, and nothing is printed.
    ///
    /// Exit code 0: success. 1: a file cannot be imported. 2: invalid arguments, or a file cannot be read.
    Import {
        /// Format of the files
        #[arg(long, value_name = "FORMAT")]
        from: ImportSource,
        /// Configuration files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Print a starting policy for the traffic of access logs, in shadow mode
    ///
    /// Groups the paths into routes and sets a limit per client for each, which refuses at most 1 % of the route's requests
    /// in these logs. Comments give the figures behind each limit. Reads the logs several times, so not from standard input.
    ///
    /// Exit code 0: success. 2: invalid arguments, a file that cannot be read, or an unknown format.
    Suggest(SuggestArgs),
}

/// Format of an imported configuration.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ImportSource {
    /// Descriptors of envoyproxy/ratelimit
    Envoy,
    /// Limits of Limitador
    Limitador,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// Policy file [default: 100 requests per minute and key]
    #[arg(long, value_name = "FILE", env = "TOLLGATE_POLICY")]
    pub(crate) policy: Option<PathBuf>,
    /// File of JSON lines; - is standard input
    #[arg(default_value = "-", value_name = "LINES")]
    pub(crate) lines: PathBuf,
}

/// Runs the parsed command.
#[must_use]
pub fn run(cli: Cli) -> Exit {
    run_with(cli, Vec::new())
}

/// Runs the parsed command. `serve` also serves these front ends, with the TLS files, tokens, connection cap and shutdown
/// of its settings.
#[must_use]
pub fn run_with(cli: Cli, front_ends: Vec<FrontEnd>) -> Exit {
    set_json(cli.command.is_json());
    match cli.command {
        Command::Serve(args) => serve::run(*args, front_ends),
        Command::Check(args) => check::run(&args),
        Command::Reserve(args) => reservation::reserve(&args),
        Command::Settle(args) => reservation::settle(&args),
        Command::Override(command) => admin::run(&command),
        Command::Reset(args) => admin::reset(&args),
        Command::Top(args) => top::run(&args),
        Command::Policy(command) => policy::run(&command),
        Command::Replay(args) => replay::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "tollgate", &mut script);
            print(&String::from_utf8_lossy(&script));
            Exit::Success
        }
        Command::Man { out } => man::run(Cli::command(), &out),
    }
}
