//! The parts of an address.

use std::fmt;
use std::path::PathBuf;

use tokio_rustls::rustls::pki_types::ServerName;

/// The servers of an address.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Servers {
    /// A local server, by its Unix socket.
    Unix { path: PathBuf, database: u32 },
    /// With TLS if `tls` is set.
    Network { layout: Layout, tls: Option<TlsFiles> },
}

/// The kind of deployment.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Layout {
    Single {
        host_port: HostPort,
        database: u32,
    },
    /// Some nodes, at least one. A cluster has only database 0.
    Cluster {
        seeds: Vec<HostPort>,
    },
    /// At least one sentinel. `login` is for the sentinels; the login of the address is for the primary.
    Sentinel {
        sentinels: Vec<HostPort>,
        login: Option<Login>,
        master: String,
        database: u32,
    },
}

/// A host name or IP address, and a port. Displayed as in error messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct HostPort {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// The TLS parameters of an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// File of the trusted certificate authorities. `None`: the public ones.
    pub(crate) ca: Option<PathBuf>,
    pub(crate) client: Option<ClientFiles>,
    /// The name in the server's certificate, if not its host.
    pub(crate) server_name: Option<ServerName<'static>>,
}

/// The files of a client certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// A login. Without a user, Redis uses its default user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: Option<Secret>,
    pub(crate) password: Secret,
}

/// A text that `Debug` hides.
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
