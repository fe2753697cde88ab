//! The URL of a Redis server, read part by part.

use std::net::Ipv6Addr;

use thiserror::Error;

use super::{Address, DEFAULT_PORT, Login, Secret};

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
pub struct AddressError(&'static str);

impl AddressError {
    /// Always false: the same text will be wrong again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }
}

const SCHEME: AddressError = AddressError(
    "the scheme of a Redis address must be redis://, as in redis://localhost:6379/0: this version \
     speaks only that, not TLS, Sentinel, Cluster or Unix sockets",
);
const QUERY: AddressError = AddressError(
    "a Redis address has no query: remove the ? and what follows (a ? in a password is %3F)",
);
const FRAGMENT: AddressError = AddressError(
    "a Redis address has no fragment: remove the # and what follows (a # in a password is %23)",
);
const USER: AddressError = AddressError(
    "the user of a Redis address has a % that is not followed by two hexadecimal digits",
);
const PASSWORD: AddressError = AddressError(
    "the password of a Redis address has a % that is not followed by two hexadecimal digits (a % itself is %25)",
);
const HOST: AddressError = AddressError(
    "the host of a Redis address must be a name, an IPv4 address, or an IPv6 address in brackets",
);
const PORT: AddressError =
    AddressError("the port of a Redis address must be a number from 1 to 65535");
const DATABASE: AddressError = AddressError(
    "the database of a Redis address must be a number, as in redis://localhost:6379/0",
);
const SLASH: AddressError = AddressError(
    "the database of a Redis address must be a number, but has an @ in it (a / in a password is %2F)",
);

pub(super) fn address(url: &str) -> Result<Address, AddressError> {
    let (scheme, rest) = url.split_once("://").ok_or(SCHEME)?;
    if !scheme.eq_ignore_ascii_case("redis") {
        return Err(SCHEME);
    }
    if let Some(mark) = rest.chars().find(|mark| matches!(mark, '?' | '#')) {
        return Err(if mark == '?' { QUERY } else { FRAGMENT });
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let database = database(path)?;
    // The last @, as a password may have one that nobody escaped.
    let (login, place) = match authority.rsplit_once('@') {
        Some((login, place)) => (self::login(login)?, place),
        None => (None, authority),
    };
    let (host, port) = host_and_port(place)?;
    Ok(Address { host, port, database, login })
}

fn database(path: &str) -> Result<u32, AddressError> {
    match path {
        "" => Ok(0),
        _ if path.contains('@') => Err(SLASH),
        _ => number(path).ok_or(DATABASE),
    }
}

/// Digits only: `parse` alone would take a plus sign as well.
fn number(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn login(text: &str) -> Result<Option<Login>, AddressError> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    if user.is_empty() && password.is_empty() {
        return Ok(None);
    }
    let password = Secret(percent_decoded(password).ok_or(PASSWORD)?);
    let user = Some(percent_decoded(user).ok_or(USER)?).filter(|user| !user.is_empty());
    Ok(Some(Login { user: user.map(Secret), password }))
}

fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => hexadecimal(bytes.next()?)? * 16 + hexadecimal(bytes.next()?)?,
            _ => byte,
        });
    }
    Some(decoded)
}

fn hexadecimal(digit: u8) -> Option<u8> {
    u8::try_from(char::from(digit).to_digit(16)?).ok()
}

fn host_and_port(place: &str) -> Result<(String, u16), AddressError> {
    let (host, port) = match place.strip_prefix('[') {
        Some(bracketed) => {
            let (host, port) = bracketed.split_once(']').ok_or(HOST)?;
            host.parse::<Ipv6Addr>().map_err(|_| HOST)?;
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or(PORT)?) })
        }
        None => match place.split_once(':') {
            Some((host, port)) => (name(host)?, Some(port)),
            None => (name(place)?, None),
        },
    };
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => number(port)
            .and_then(|port| port.try_into().ok())
            .filter(|port| *port > 0)
            .ok_or(PORT)?,
    };
    Ok((host.to_owned(), port))
}

fn name(host: &str) -> Result<&str, AddressError> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if !host.is_empty() && host.bytes().all(is_fit) { Ok(host) } else { Err(HOST) }
}
