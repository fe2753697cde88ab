//! Which service a command asks, and how it is reached.

use std::path::PathBuf;

use clap::Args;

/// The arguments of every command that asks a running service.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServerArgs {
    /// The service to ask
    #[arg(
        long,
        value_name = "URL",
        env = "TOLLGATE_SERVER",
        default_value = "http://127.0.0.1:8080"
    )]
    pub(crate) server: String,
    /// With https://, trust the CAs in this PEM file instead of those publicly known
    #[arg(long, value_name = "FILE", env = "TOLLGATE_CA")]
    pub(crate) ca: Option<PathBuf>,
    /// With https://, show this certificate, in PEM, to a service that asks for one
    #[arg(long, value_name = "FILE", env = "TOLLGATE_CLIENT_CERT")]
    pub(crate) client_cert: Option<PathBuf>,
    /// The private key of that certificate, in PEM without a passphrase
    #[arg(long, value_name = "FILE", env = "TOLLGATE_CLIENT_KEY")]
    pub(crate) client_key: Option<PathBuf>,
}
