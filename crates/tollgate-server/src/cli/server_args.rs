//! Arguments that select a running service and its TLS files.

use std::path::PathBuf;

use clap::Args;

/// The arguments of every command that connects to a running service.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServerArgs {
    /// URL of the service; without a scheme, http:// is assumed, as in localhost:8080
    #[arg(
        long,
        value_name = "URL",
        env = "TOLLGATE_SERVER",
        default_value = "http://127.0.0.1:8080"
    )]
    pub(crate) server: String,
    /// With https://, trust only the CA certificates in this PEM file [default: the public CAs]
    #[arg(long, value_name = "FILE", env = "TOLLGATE_CA")]
    pub(crate) ca: Option<PathBuf>,
    /// With https://, client certificate for a service that requires one (PEM)
    #[arg(long, value_name = "FILE", env = "TOLLGATE_CLIENT_CERT")]
    pub(crate) client_cert: Option<PathBuf>,
    /// Private key of the client certificate (PEM, without a passphrase)
    #[arg(long, value_name = "FILE", env = "TOLLGATE_CLIENT_KEY")]
    pub(crate) client_key: Option<PathBuf>,
}
