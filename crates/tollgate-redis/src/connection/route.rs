//! How a connection finds the server of an address.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Connection, Endpoint, Sentinels, Target, Tls};
use crate::address::{Address, HostPort, Layout, Servers};
use crate::failure::Failure;

/// How a connection finds its server. Displayed as in error messages.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    Fixed(Target),
    /// The first reachable node of a cluster: every node publishes the messages of all nodes.
    AnyOf(Vec<Target>),
    /// The primary that the sentinels name.
    Sentinels(Arc<Sentinels>),
}

impl Route {
    /// Creates the route of an address. `tls` are the settings for its `rediss` schemes.
    pub(crate) fn new(address: &Address, tls: Option<&Arc<Tls>>) -> Self {
        let login = address.login.clone();
        let layout = match &address.servers {
            Servers::Unix { path, database } => {
                let endpoint = Endpoint::Unix(path.clone());
                return Self::Fixed(Target { endpoint, login, database: *database });
            }
            Servers::Network { layout, .. } => layout,
        };
        let target = |host_port: &HostPort, login, database| Target {
            endpoint: Endpoint::new(host_port.clone(), tls),
            login,
            database,
        };
        match layout {
            Layout::Single { host_port, database } => {
                Self::Fixed(target(host_port, login, *database))
            }
            Layout::Cluster { seeds } => {
                Self::AnyOf(seeds.iter().map(|seed| target(seed, login.clone(), 0)).collect())
            }
            Layout::Sentinel { sentinels, login: sentinel_login, master, database } => {
                let sentinels =
                    sentinels.iter().map(|sentinel| target(sentinel, sentinel_login.clone(), 0));
                Self::Sentinels(Arc::new(Sentinels::new(
                    sentinels.collect(),
                    master.clone(),
                    target(&HostPort { host: String::new(), port: 0 }, login, *database),
                )))
            }
        }
    }

    /// Returns the sentinels, if they name the server.
    pub(crate) fn sentinels(&self) -> Option<Arc<Sentinels>> {
        match self {
            Self::Sentinels(sentinels) => Some(Arc::clone(sentinels)),
            Self::Fixed(_) | Self::AnyOf(_) => None,
        }
    }

    /// Connects and logs in. The timeout applies to each server that is tried.
    pub(crate) async fn connect(&self, connect_timeout: Duration) -> Result<Connection, Failure> {
        #[cfg(tollgate_model)]
        if let Some(connection) = super::model::connect() {
            return Ok(connection);
        }
        match self {
            Self::Fixed(target) => Connection::open(target, connect_timeout).await,
            Self::AnyOf(targets) => {
                let mut last_failure = Failure::Unreachable("the address has no server".to_owned());
                for target in targets {
                    match Connection::open(target, connect_timeout).await {
                        Ok(connection) => return Ok(connection),
                        Err(failure) => last_failure = last_failure.then(failure),
                    }
                }
                Err(last_failure)
            }
            Self::Sentinels(sentinels) => sentinels.connect(connect_timeout).await,
        }
    }
}

impl From<&Address> for Route {
    fn from(address: &Address) -> Self {
        Self::new(address, Tls::of(address, None).as_ref())
    }
}

impl From<Address> for Route {
    fn from(address: Address) -> Self {
        Self::from(&address)
    }
}

impl From<Target> for Route {
    fn from(target: Target) -> Self {
        Self::Fixed(target)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(target) => target.endpoint.fmt(f),
            Self::AnyOf(targets) => {
                let endpoint = targets.first().map(|target| &target.endpoint);
                endpoint.map_or(Ok(()), |endpoint| endpoint.fmt(f))
            }
            Self::Sentinels(sentinels) => sentinels.fmt(f),
        }
    }
}
