//! How the server of an address is found, anew for every connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::address::{Address, Layout, Place, Servers};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::sentinel::Sentinels;
use crate::target::{Endpoint, Target};
use crate::tls::Tls;

/// How a server is found. Displayed as messages name it.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    To(Target),
    /// The first of these that can be reached: news are told on every node of a cluster.
    AnyOf(Vec<Target>),
    /// Whichever the sentinels name.
    Named(Arc<Sentinels>),
}

impl Route {
    /// Who names the server, if anyone does.
    pub(crate) fn sentinels(&self) -> Option<Arc<Sentinels>> {
        match self {
            Self::Named(sentinels) => Some(Arc::clone(sentinels)),
            Self::To(_) | Self::AnyOf(_) => None,
        }
    }

    /// Connects and logs in, within this time for each server that is tried.
    pub(crate) async fn connect(&self, patience: Duration) -> Result<Connection, Failure> {
        match self {
            Self::To(target) => Connection::open(target, patience).await,
            Self::AnyOf(targets) => {
                let mut last = Failure::Unreachable("the address names no server".to_owned());
                for target in targets {
                    match Connection::open(target, patience).await {
                        Ok(connection) => return Ok(connection),
                        Err(failure) => last = failure,
                    }
                }
                Err(last)
            }
            Self::Named(sentinels) => sentinels.connect(patience).await,
        }
    }
}

impl From<&Address> for Route {
    fn from(address: &Address) -> Self {
        let login = address.login.clone();
        let (layout, tls) = match &address.servers {
            Servers::Unix { path, database } => {
                let endpoint = Endpoint::Unix(path.clone());
                return Self::To(Target { endpoint, login, database: *database });
            }
            Servers::Network { layout, tls } => (layout, tls),
        };
        let tls = tls.clone().map(|files| Arc::new(Tls::new(files)));
        let target = |place: &Place, login, database| Target {
            endpoint: Endpoint::at(place.clone(), tls.as_ref()),
            login,
            database,
        };
        match layout {
            Layout::Single { place, database } => Self::To(target(place, login, *database)),
            Layout::Cluster { seeds } => {
                Self::AnyOf(seeds.iter().map(|seed| target(seed, login.clone(), 0)).collect())
            }
            Layout::Sentinel { sentinels, login: own, master, database } => {
                let targets = sentinels.iter().map(|place| target(place, own.clone(), 0)).collect();
                Self::Named(Arc::new(Sentinels::new(
                    targets,
                    master.clone(),
                    target(&Place { host: String::new(), port: 0 }, login, *database),
                )))
            }
        }
    }
}

impl From<Address> for Route {
    fn from(address: Address) -> Self {
        Self::from(&address)
    }
}

impl From<Target> for Route {
    fn from(target: Target) -> Self {
        Self::To(target)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::To(target) => target.endpoint.fmt(f),
            Self::AnyOf(targets) => {
                let endpoint = targets.first().map(|target| &target.endpoint);
                endpoint.map_or(Ok(()), |endpoint| endpoint.fmt(f))
            }
            Self::Named(sentinels) => sentinels.fmt(f),
        }
    }
}
