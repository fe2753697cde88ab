//! Arguments of the admin commands: `override` and `reset`.

use clap::{Args, Subcommand};

use super::ServerArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum OverrideCommand {
    /// Set the limits of one client in one rule
    ///
    /// Each RATE replaces the rule's limit with the same window and keeps its counter; a RATE with another window is an
    /// additional limit. The rule's other limits stay. Without --rule, exactly one rule must be able to apply to the
    /// client. Prints the limits before and after the change.
    Set(SetArgs),
    /// Show the overrides of one client
    Get {
        /// Client id
        client: String,
        /// Tenant of the client
        #[arg(long)]
        tenant: Option<String>,
        /// Print the response of the service as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Remove the overrides of one client; the limits of the policy apply again
    Rm {
        /// Client id
        client: String,
        /// Remove only the override of this rule
        #[arg(long, value_name = "NAME")]
        rule: Option<String>,
        #[command(flatten)]
        change: ChangeArgs,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// List all overrides
    List {
        /// Only list clients whose id starts with this text
        #[arg(long)]
        prefix: Option<String>,
        /// Print the responses of the service as JSON, one page per line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
}

impl OverrideCommand {
    /// Returns whether the command prints JSON (`--json`).
    pub(crate) const fn is_json(&self) -> bool {
        match self {
            Self::Set(args) => args.json,
            Self::Get { json, .. } | Self::List { json, .. } => *json,
            Self::Rm { .. } => false,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// Client id
    pub(crate) client: String,
    /// Limits, such as 20/min or 200/h; 0 blocks the client
    #[arg(required = true, value_name = "RATE")]
    pub(crate) limits: Vec<String>,
    /// Burst of a token bucket; allowed with a single RATE only
    #[arg(long, value_name = "N")]
    pub(crate) burst: Option<u64>,
    /// Rule to override [default: the only rule that can apply to the client]
    #[arg(long, value_name = "NAME", conflicts_with = "all_rules")]
    pub(crate) rule: Option<String>,
    /// Override all rules that can apply to the client, except blocks
    #[arg(long)]
    pub(crate) all_rules: bool,
    /// Remove the rule's other limits for this client
    #[arg(long)]
    pub(crate) only: bool,
    /// Remove the override after this time, such as 2h
    #[arg(long = "for", value_name = "TIME", conflicts_with = "until")]
    pub(crate) duration: Option<String>,
    /// Remove the override at this time (RFC 3339), such as 2030-01-31T18:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Also reset the client's counters of the rule, so that a raised limit is usable at once
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Print the limits before and after, without a change
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// Print the response of the service as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ResetArgs {
    /// Client id
    pub(crate) client: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Arguments of every command that changes a client.
#[derive(Debug, Args)]
pub(crate) struct ChangeArgs {
    /// Reason for the change, recorded in the audit log
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Author of the change, recorded in the audit log
    #[arg(long, value_name = "NAME", env = "USER")]
    pub(crate) author: Option<String>,
    /// Tenant of the client
    #[arg(long)]
    pub(crate) tenant: Option<String>,
}
