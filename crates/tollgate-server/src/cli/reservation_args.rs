//! Arguments of `tollgate reserve` and `tollgate settle`.

use clap::Args;

use super::ServerArgs;
use crate::wire::costs::Amount;

#[derive(Debug, Args)]
pub(crate) struct ReserveArgs {
    /// A key, or facts such as client=c1 path=/chat
    #[arg(required = true, value_name = "KEY|FACT=VALUE")]
    pub(crate) key_or_facts: Vec<String>,
    /// Estimate in requests, or the amount of a unit such as tokens=1800; repeatable with units [default: 1]
    ///
    /// A unit that is not named costs 0.
    #[arg(long, value_name = "N|UNIT=N", value_parser = Amount::parse, allow_negative_numbers = true)]
    pub(crate) cost: Vec<Amount>,
    /// How long the reservation holds its slots, such as 90s or 5m; at most 1d [default: 60s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttl: Option<String>,
    /// Id of this reservation; a second call with the same id returns the first reservation and takes nothing
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print the response of the service as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SettleArgs {
    /// The reservation that `tollgate reserve` printed
    pub(crate) reservation: String,
    /// Amount that was used, such as tokens=420; repeatable. A unit that is not named keeps its estimate
    #[arg(
        long,
        value_name = "N|UNIT=N",
        value_parser = Amount::parse,
        allow_negative_numbers = true,
        required_unless_present = "cancel"
    )]
    pub(crate) cost: Vec<Amount>,
    /// Return the whole estimate, because nothing was used
    #[arg(long, conflicts_with = "cost")]
    pub(crate) cancel: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print the response of the service as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
