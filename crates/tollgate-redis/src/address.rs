//! Where Redis is, and how to log in there.

use std::ffi::OsString;
use std::str::FromStr;
use std::sync::Arc;

use crate::tls::Tls;

mod error;
mod escape;
mod parse;
mod parts;
mod query;
mod show;
#[cfg(test)]
mod tests;

pub use error::AddressError;
pub(crate) use parts::{ClientFiles, Layout, Login, Place, Servers, TlsFiles};

/// Where Redis is, and how to log in there.
///
/// | URL | leads to |
/// |---|---|
/// | `redis://[user[:password]@]host[:port][/database]` | a server |
/// | `unix://[user:password@]/path/to.sock[?db=database]` | a server of this machine |
/// | `redis+cluster://[login@]host:port,host2:port2` | a cluster, by some of its nodes |
/// | `redis+sentinel://[login@]host:port,host2:port2/master[/database]` | the server that these sentinels call so; their own login is `?sentinel_user=…&sentinel_password=…` |
/// | `rediss://…`, `rediss+cluster://…`, `rediss+sentinel://…` | the same over TLS |
///
/// TLS takes `?ca=/path/ca.pem` (without it the authorities that browsers trust),
/// `&cert=/path/client.pem&key=/path/client.key`, and `&server_name=name` where certificates are for another
/// name than the host. Certificates are always verified. In logins and paths, what means something else in a
/// URL is percent-escaped.
///
/// It never shows whom it logs in as.
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
    /// The server of this machine, as Redis is set up by default.
    ///
    /// ```
    /// use tollgate_redis::Address;
    ///
    /// assert_eq!(Address::local().to_string(), "redis://127.0.0.1:6379/0");
    /// ```
    #[must_use]
    pub fn local() -> Self {
        let place = Place { host: "127.0.0.1".to_owned(), port: parse::REDIS_PORT };
        let layout = Layout::Single { place, database: 0 };
        Self { login: None, servers: Servers::Network { layout, tls: None } }
    }

    /// Where the environment variable `REDIS_URL` says, or the [server of this machine](Self::local) if it says
    /// nothing.
    ///
    /// # Errors
    /// It says something that is no address.
    pub fn from_env() -> Result<Self, AddressError> {
        Self::told(std::env::var_os("REDIS_URL"))
    }

    /// Some nodes of the cluster that it leads to, and what is needed for TLS; none if it leads elsewhere.
    pub(crate) fn cluster(&self) -> Option<(Vec<Place>, Option<Arc<Tls>>)> {
        match &self.servers {
            Servers::Network { layout: Layout::Cluster { seeds }, tls } => {
                Some((seeds.clone(), tls.clone().map(|files| Arc::new(Tls::new(files)))))
            }
            _ => None,
        }
    }

    fn told(url: Option<OsString>) -> Result<Self, AddressError> {
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
