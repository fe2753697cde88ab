//! The address of a Redis deployment.

use std::ffi::OsString;
use std::str::FromStr;

mod display;
mod error;
mod escape;
mod parse;
mod parts;
mod query;
#[cfg(test)]
mod tests;

pub use error::AddressError;
pub(crate) use parts::{ClientFiles, HostPort, Layout, Login, Servers, TlsFiles};

/// The address of a Redis deployment, with its login.
///
/// | URL | deployment |
/// |---|---|
/// | `redis://[user[:password]@]host[:port][/database]` | a server |
/// | `unix://[user:password@]/path/to.sock[?db=database]` | a local server, by its Unix socket |
/// | `redis+cluster://[login@]host:port,host2:port2` | a cluster, by some of its nodes |
/// | `redis+sentinel://[login@]host:port,host2:port2/master[/database]` | the primary that these sentinels monitor under the name `master`; the login of the sentinels is `?sentinel_user=…&sentinel_password=…` |
/// | `rediss://…`, `rediss+cluster://…`, `rediss+sentinel://…` | the same over TLS |
///
/// TLS has the parameters `?ca=/path/ca.pem` (default: the public certificate authorities),
/// `&cert=/path/client.pem&key=/path/client.key`, and `&server_name=name` if the certificates are for another
/// name than the host. A program can supply its own TLS configuration instead of these files, see
/// [`RedisStoreBuilder::tls_config`](crate::RedisStoreBuilder::tls_config). Reserved characters in logins and
/// paths are percent-encoded.
///
/// `Display` and `Debug` hide the login.
///
/// ```
/// use tollgate_redis::Address;
///
/// let address: Address = "rediss://app:s3cret@cache.internal/2?ca=/etc/ca.pem".parse()?;
/// assert_eq!(address.to_string(), "rediss://***@cache.internal:6379/2?ca=/etc/ca.pem");
/// # Ok::<(), tollgate_redis::AddressError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub(crate) login: Option<Login>,
    pub(crate) servers: Servers,
}

impl Address {
    /// The local server with the default settings of Redis.
    ///
    /// ```
    /// use tollgate_redis::Address;
    ///
    /// assert_eq!(Address::local().to_string(), "redis://127.0.0.1:6379/0");
    /// ```
    #[must_use]
    pub fn local() -> Self {
        let host_port = HostPort { host: "127.0.0.1".to_owned(), port: parse::REDIS_PORT };
        let layout = Layout::Single { host_port, database: 0 };
        Self { login: None, servers: Servers::Network { layout, tls: None } }
    }

    /// Parses the environment variable `REDIS_URL`. If it is not set, returns the [local server](Self::local).
    ///
    /// # Errors
    /// The value is not a valid address.
    pub fn from_env() -> Result<Self, AddressError> {
        Self::from_optional_url(std::env::var_os("REDIS_URL"))
    }

    /// Returns the seed nodes, if this is the address of a cluster.
    pub(crate) fn cluster_seeds(&self) -> Option<Vec<HostPort>> {
        match &self.servers {
            Servers::Network { layout: Layout::Cluster { seeds }, .. } => Some(seeds.clone()),
            _ => None,
        }
    }

    /// Returns the TLS parameters of a `rediss` scheme.
    pub(crate) fn tls_files(&self) -> Option<&TlsFiles> {
        match &self.servers {
            Servers::Network { tls, .. } => tls.as_ref(),
            Servers::Unix { .. } => None,
        }
    }

    fn from_optional_url(url: Option<OsString>) -> Result<Self, AddressError> {
        match url {
            None => Ok(Self::local()),
            Some(url) => url.to_string_lossy().parse(),
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(url: &str) -> Result<Self, AddressError> {
        parse::address(url)
    }
}
