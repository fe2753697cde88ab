//! Errors of invalid addresses.

use std::borrow::Cow;

use thiserror::Error;

/// An invalid address of a Redis deployment.
///
/// The message names the wrong part and the correct form. It quotes nothing: any part of a mistyped URL may be the
/// password.
///
/// ```
/// use tollgate_redis::Address;
///
/// let error = "redis://localhost:redis".parse::<Address>().unwrap_err();
/// assert_eq!(error.to_string(), "the port of a Redis address must be a number from 1 to 65535");
/// assert!(!error.is_transient());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct AddressError(Cow<'static, str>);

impl AddressError {
    /// Always false: the same text is always invalid.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }

    pub(super) const fn new(message: &'static str) -> Self {
        Self(Cow::Borrowed(message))
    }

    /// The message must not contain a part of the URL.
    pub(super) const fn composed(message: String) -> Self {
        Self(Cow::Owned(message))
    }
}

pub(super) const SCHEME: AddressError = AddressError::new(
    "the scheme of a Redis address must be redis:// (as in redis://localhost:6379/0), rediss:// for TLS, unix://, \
     redis+cluster://, rediss+cluster://, redis+sentinel:// or rediss+sentinel://",
);
pub(super) const FRAGMENT: AddressError = AddressError::new(
    "a Redis address has no fragment: remove the # and the rest (write # in a password as %23)",
);
pub(super) const USER: AddressError = AddressError::new(
    "the user of a Redis address has a % that is not followed by two hexadecimal digits",
);
pub(super) const PASSWORD: AddressError = AddressError::new(
    "the password of a Redis address has a % that is not followed by two hexadecimal digits (write % as %25)",
);
pub(super) const HOST: AddressError = AddressError::new(
    "the host of a Redis address must be a name, an IPv4 address, or an IPv6 address in brackets",
);
pub(super) const MULTIPLE_HOSTS: AddressError = AddressError::new(
    "a redis:// address has one host; use redis+cluster:// or redis+sentinel:// for several",
);
pub(super) const PORT: AddressError =
    AddressError::new("the port of a Redis address must be a number from 1 to 65535");
pub(super) const DATABASE: AddressError = AddressError::new(
    "the database of a Redis address must be a number, as in redis://localhost:6379/0",
);
pub(super) const CLUSTER_DATABASE: AddressError = AddressError::new(
    "the path of a redis+cluster:// address must be empty: a cluster has only database 0",
);
pub(super) const MASTER: AddressError = AddressError::new(
    "the path of a redis+sentinel:// address must be the name of the master (letters, digits and ._-), as in \
     redis+sentinel://localhost:26379/mymaster/0",
);
pub(super) const PATH: AddressError = AddressError::new(
    "the path of a Redis address contains an @ (write / in a password as %2F, and @ in a path as %40)",
);
pub(super) const SOCKET: AddressError = AddressError::new(
    "the path of a unix:// address must be the path of a socket, as in unix:///run/redis.sock, in UTF-8 and with a % \
     only before two hexadecimal digits",
);
pub(super) const SOCKET_HOST: AddressError = AddressError::new(
    "a unix:// address has no host; use unix:///run/redis.sock or unix://user:password@/run/redis.sock (write / in a \
     password as %2F)",
);
