//! What an address is made of.

use std::fmt;
use std::path::PathBuf;

use tokio_rustls::rustls::pki_types::ServerName;

/// What is where the address leads.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Servers {
    /// A server of this machine, by its socket.
    Unix { path: PathBuf, database: u32 },
    /// With TLS, if there are files for it.
    Network { layout: Layout, tls: Option<TlsFiles> },
}

/// How many servers there are, and how they are found.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Layout {
    Single {
        place: Place,
        database: u32,
    },
    /// Some of its nodes, at least one. It has no databases to choose from.
    Cluster {
        seeds: Vec<Place>,
    },
    /// At least one. The login is for these; that of the address is for the server they name.
    Sentinel {
        sentinels: Vec<Place>,
        login: Option<Login>,
        master: String,
        database: u32,
    },
}

/// A machine, by name or number, and a port there. Displayed as messages name a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// Whom TLS trusts, and as whom it presents us.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// Certificates of the authorities that are trusted. None for those that browsers trust.
    pub(crate) ca: Option<PathBuf>,
    pub(crate) client: Option<ClientFiles>,
    /// Whom the server's certificate must be for, if not its host.
    pub(crate) server_name: Option<ServerName<'static>>,
}

/// A certificate of our own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// Whom to log in as. Without a user it is the server's default one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: Option<Secret>,
    pub(crate) password: Secret,
}

/// A text that no log shows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(Vec<u8>);

impl Secret {
    pub(super) const fn new(text: Vec<u8>) -> Self {
        Self(text)
    }

    pub(crate) fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
