//! One server to connect to.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::Tls;
use crate::address::{HostPort, Login};

/// One server to connect to, with its login and database.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) endpoint: Endpoint,
    pub(crate) login: Option<Login>,
    pub(crate) database: u32,
}

/// The address and transport of a server. Displayed as in error messages.
#[derive(Debug, Clone)]
pub(crate) enum Endpoint {
    Tcp(HostPort),
    Tls(HostPort, Arc<Tls>),
    Unix(PathBuf),
}

impl Endpoint {
    /// A network server, with TLS if there are settings for it. All servers of a store share these.
    pub(crate) fn new(host_port: HostPort, tls: Option<&Arc<Tls>>) -> Self {
        match tls {
            Some(tls) => Self::Tls(host_port, Arc::clone(tls)),
            None => Self::Tcp(host_port),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host_port) | Self::Tls(host_port, _) => host_port.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}
