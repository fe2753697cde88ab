//! How the server of an address is found, anew for every connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::address::{Address, Layout, Servers};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::target::{Endpoint, Target};
use crate::tls::Tls;

/// How a server is found. Displayed as messages name it.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    To(Target),
    /// The layout that the address has, and this version does not know its way in.
    Unknown(&'static str),
}

impl Route {
    /// Connects and logs in, within this time in all.
    pub(crate) async fn connect(&self, patience: Duration) -> Result<Connection, Failure> {
        match self {
            Self::To(target) => Connection::open(target, patience).await,
            Self::Unknown(layout) => Err(Failure::Unreachable(format!(
                "this version does not speak to a Redis {layout} yet: it needs the address of one server"
            ))),
        }
    }
}

impl From<&Address> for Route {
    fn from(address: &Address) -> Self {
        let (endpoint, database) = match &address.servers {
            Servers::Unix { path, database } => (Endpoint::Unix(path.clone()), *database),
            Servers::Network { layout: Layout::Single { place, database }, tls } => {
                let tls = tls.clone().map(|files| Arc::new(Tls::new(files)));
                (Endpoint::at(place.clone(), tls.as_ref()), *database)
            }
            Servers::Network { layout: Layout::Cluster { .. }, .. } => {
                return Self::Unknown("cluster");
            }
            Servers::Network { layout: Layout::Sentinel { .. }, .. } => {
                return Self::Unknown("sentinel");
            }
        };
        Self::To(Target { endpoint, login: address.login.clone(), database })
    }
}

impl From<Address> for Route {
    fn from(address: Address) -> Self {
        Self::from(&address)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::To(target) => target.endpoint.fmt(f),
            Self::Unknown(layout) => f.write_str(layout),
        }
    }
}
