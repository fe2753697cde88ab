//! What administrators can type.

use clap::{Args, Subcommand};

use super::ServerArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum OverrideCommand {
    /// Give a client limits of its own, in place of those it has
    Set(SetArgs),
    /// Show a client's own limits
    Get {
        /// The client
        client: String,
        /// Its tenant
        #[arg(long)]
        tenant: Option<String>,
        /// Print the service's answer as it is
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Let a client have the limits of everyone again
    Rm {
        /// The client
        client: String,
        #[command(flatten)]
        who: WhoArgs,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show all limits of clients' own
    List {
        /// Only clients that begin so
        #[arg(long)]
        prefix: Option<String>,
        /// Print the service's answers as they are, one a page
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// The client
    pub(crate) client: String,
    /// The limits, such as 20/min and 200/h; 0 refuses everything
    #[arg(required = true, value_name = "RATE")]
    pub(crate) limits: Vec<String>,
    /// How much at once, of a token bucket
    #[arg(long, value_name = "N")]
    pub(crate) burst: Option<u64>,
    /// The one rule they are for; without, every rule keyed per client
    #[arg(long)]
    pub(crate) rule: Option<String>,
    /// How long they last, such as 2h
    #[arg(long = "for", value_name = "TIME", conflicts_with = "until")]
    pub(crate) lasting: Option<String>,
    /// Until when they last, such as 2030-01-31T18:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    #[command(flatten)]
    pub(crate) who: WhoArgs,
    /// Print the service's answer as it is
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ResetArgs {
    /// The client
    pub(crate) client: String,
    #[command(flatten)]
    pub(crate) who: WhoArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// What is said of a change, for the audit.
#[derive(Debug, Args)]
pub(crate) struct WhoArgs {
    /// Why, for the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Who does it, for the audit
    #[arg(long, value_name = "NAME", env = "USER")]
    pub(crate) author: Option<String>,
    /// The client's tenant
    #[arg(long)]
    pub(crate) tenant: Option<String>,
}
