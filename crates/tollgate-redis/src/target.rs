//! One server to connect to.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::address::{Login, Place};
use crate::tls::Tls;

/// One server to connect to, and as whom.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) endpoint: Endpoint,
    pub(crate) login: Option<Login>,
    pub(crate) database: u32,
}

/// Where a server is, and over what to speak to it. Displayed as messages name it.
#[derive(Debug, Clone)]
pub(crate) enum Endpoint {
    Tcp(Place),
    Tls(Place, Arc<Tls>),
    Unix(PathBuf),
}

impl Endpoint {
    /// A server in the network. Servers of one address share what was read for TLS.
    pub(crate) fn at(place: Place, tls: Option<&Arc<Tls>>) -> Self {
        match tls {
            Some(tls) => Self::Tls(place, Arc::clone(tls)),
            None => Self::Tcp(place),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(place) | Self::Tls(place, _) => place.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}
