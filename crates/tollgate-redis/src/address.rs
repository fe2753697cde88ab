//! Where a Redis server is, and how to log in there.

use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;

mod parse;
#[cfg(test)]
mod tests;

pub use parse::AddressError;

/// The port that Redis listens on unless told otherwise.
const DEFAULT_PORT: u16 = 6379;

/// Where a Redis server is, and how to log in there.
///
/// Read from `redis://[user[:password]@]host[:port][/database]`. It never shows whom it logs in as.
///
/// ```
/// use tollgate_redis::Address;
///
/// let address: Address = "redis://app:s3cret@cache.internal/2".parse()?;
/// assert_eq!((address.host(), address.port(), address.database()), ("cache.internal", 6379, 2));
/// assert_eq!(address.to_string(), "redis://***@cache.internal:6379/2");
/// # Ok::<(), tollgate_redis::AddressError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
    database: u32,
    login: Option<Login>,
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
    pub(crate) fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
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
        Self { host: "127.0.0.1".to_owned(), port: DEFAULT_PORT, database: 0, login: None }
    }

    /// Where the environment variable `REDIS_URL` says, or the [server of this machine](Self::local) if it says
    /// nothing.
    ///
    /// # Errors
    /// It says something that is no address.
    pub fn from_env() -> Result<Self, AddressError> {
        Self::told(std::env::var_os("REDIS_URL"))
    }

    fn told(url: Option<OsString>) -> Result<Self, AddressError> {
        match url {
            None => Ok(Self::local()),
            Some(url) => url.to_string_lossy().parse(),
        }
    }

    /// The name or the number of the machine.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The number of the database.
    #[must_use]
    pub const fn database(&self) -> u32 {
        self.database
    }

    pub(crate) const fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// Host and port, as messages name a server.
    pub(crate) fn place(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(url: &str) -> Result<Self, AddressError> {
        parse::address(url)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let login = if self.login.is_some() { "***@" } else { "" };
        write!(f, "redis://{login}{}/{}", self.place(), self.database)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
