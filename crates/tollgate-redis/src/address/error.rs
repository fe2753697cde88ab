//! What is wrong with a text that is no address.

use std::borrow::Cow;

use thiserror::Error;

/// Why a text is not the address of a Redis server.
///
/// The message names the part that is wrong and what would be right. It quotes nothing: where a URL is
/// mistyped, any part of it may be the password.
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
    /// Always false: the same text will be wrong again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }

    pub(super) const fn told(what: &'static str) -> Self {
        Self(Cow::Borrowed(what))
    }

    /// Nothing of the URL may be in it.
    pub(super) const fn composed(what: String) -> Self {
        Self(Cow::Owned(what))
    }
}

pub(super) const SCHEME: AddressError = AddressError::told(
    "the scheme of a Redis address must be redis:// (as in redis://localhost:6379/0), rediss:// for TLS, unix://, \
     redis+cluster://, rediss+cluster://, redis+sentinel:// or rediss+sentinel://",
);
pub(super) const FRAGMENT: AddressError = AddressError::told(
    "a Redis address has no fragment: remove the # and what follows (a # in a password is %23)",
);
pub(super) const USER: AddressError = AddressError::told(
    "the user of a Redis address has a % that is not followed by two hexadecimal digits",
);
pub(super) const PASSWORD: AddressError = AddressError::told(
    "the password of a Redis address has a % that is not followed by two hexadecimal digits (a % itself is %25)",
);
pub(super) const HOST: AddressError = AddressError::told(
    "the host of a Redis address must be a name, an IPv4 address, or an IPv6 address in brackets",
);
pub(super) const SEVERAL: AddressError = AddressError::told(
    "a redis:// address has one host: several are for redis+cluster:// and redis+sentinel://",
);
pub(super) const PORT: AddressError =
    AddressError::told("the port of a Redis address must be a number from 1 to 65535");
pub(super) const DATABASE: AddressError = AddressError::told(
    "the database of a Redis address must be a number, as in redis://localhost:6379/0",
);
pub(super) const CLUSTER_DATABASE: AddressError = AddressError::told(
    "the path of a redis+cluster:// address must be empty: a cluster has no database but 0",
);
pub(super) const MASTER: AddressError = AddressError::told(
    "the path of a redis+sentinel:// address must be the master's name, of letters, digits and ._-, as in \
     redis+sentinel://localhost:26379/mymaster/0",
);
pub(super) const PATH: AddressError = AddressError::told(
    "the path of a Redis address has an @ in it (a / in a password is %2F, and an @ in a path is %40)",
);
pub(super) const SOCKET: AddressError = AddressError::told(
    "the path of a unix:// address must be that of a socket, as in unix:///run/redis.sock, in UTF-8 and with a % \
     only before two hexadecimal digits",
);
pub(super) const SOCKET_HOST: AddressError = AddressError::told(
    "a unix:// address has no host: it is unix:///run/redis.sock or unix://user:password@/run/redis.sock (a / in a \
     password is %2F)",
);
