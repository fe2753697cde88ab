//! The URL of a Redis server, read part by part.
//!
//! An @ ends the login and stands nowhere else: so a password in which nobody has escaped what ends a part
//! of a URL is an error, and never taken for a part that may be shown.

use std::net::Ipv6Addr;

use super::Address;
use super::error::{
    AddressError, CLUSTER_DATABASE, DATABASE, FRAGMENT, HOST, MASTER, PASSWORD, PATH, PORT, SCHEME,
    SEVERAL, SOCKET, SOCKET_HOST, USER,
};
use super::escape::unescaped;
use super::parts::{Layout, Login, Place, Secret, Servers};
use super::query::{Form, Query};

/// The ports that Redis and its sentinels listen on unless told otherwise.
pub(super) const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

pub(super) fn address(url: &str) -> Result<Address, AddressError> {
    let (scheme, rest) = url.split_once("://").ok_or(SCHEME)?;
    let form = Form::of_scheme(&scheme.to_ascii_lowercase()).ok_or(SCHEME)?;
    if rest.contains('#') {
        return Err(FRAGMENT);
    }
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if path.contains('@') {
        return Err(PATH);
    }
    // The last @, as a password may have one that nobody escaped.
    let (login, places) = match authority.rsplit_once('@') {
        Some((login, places)) => (self::login(login)?, places),
        None => (None, authority),
    };
    let mut query = Query::parse(query, form)?;
    let servers = match form {
        Form::Unix if places.is_empty() => unix(path, &mut query)?,
        Form::Unix => return Err(SOCKET_HOST),
        Form::Single { .. } => network(single(places, path)?, &mut query)?,
        Form::Cluster { .. } => network(cluster(places, path)?, &mut query)?,
        Form::Sentinel { .. } => network(sentinel(places, path, &mut query)?, &mut query)?,
    };
    Ok(Address { login, servers })
}

fn unix(path: &str, query: &mut Query) -> Result<Servers, AddressError> {
    let path = unescaped(path).and_then(|path| String::from_utf8(path).ok()).ok_or(SOCKET)?;
    if path.is_empty() || path.contains('\0') {
        return Err(SOCKET);
    }
    let database = query.number("db").unwrap_or(Ok(0))?;
    Ok(Servers::Unix { path: format!("/{path}").into(), database })
}

fn network(layout: Layout, query: &mut Query) -> Result<Servers, AddressError> {
    Ok(Servers::Network { layout, tls: query.tls()? })
}

fn single(place: &str, path: &str) -> Result<Layout, AddressError> {
    if place.contains(',') {
        return Err(SEVERAL);
    }
    Ok(Layout::Single { place: self::place(place, REDIS_PORT)?, database: database(path)? })
}

fn cluster(seeds: &str, path: &str) -> Result<Layout, AddressError> {
    match database(path) {
        Ok(0) => Ok(Layout::Cluster { seeds: places(seeds, REDIS_PORT)? }),
        _ => Err(CLUSTER_DATABASE),
    }
}

fn sentinel(sentinels: &str, path: &str, query: &mut Query) -> Result<Layout, AddressError> {
    let (master, database) = path.split_once('/').unwrap_or((path, ""));
    Ok(Layout::Sentinel {
        sentinels: places(sentinels, SENTINEL_PORT)?,
        login: query.sentinel_login()?,
        master: name(master).ok_or(MASTER)?.to_owned(),
        database: self::database(database)?,
    })
}

fn database(path: &str) -> Result<u32, AddressError> {
    if path.is_empty() { Ok(0) } else { number(path).ok_or(DATABASE) }
}

/// Digits only: `parse` alone would take a plus sign as well.
pub(super) fn number(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn login(text: &str) -> Result<Option<Login>, AddressError> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    if user.is_empty() && password.is_empty() {
        return Ok(None);
    }
    let password = Secret::new(unescaped(password).ok_or(PASSWORD)?);
    let user = Some(unescaped(user).ok_or(USER)?).filter(|user| !user.is_empty());
    Ok(Some(Login { user: user.map(Secret::new), password }))
}

fn places(text: &str, default_port: u16) -> Result<Vec<Place>, AddressError> {
    text.split(',').map(|text| place(text, default_port)).collect()
}

fn place(text: &str, default_port: u16) -> Result<Place, AddressError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(bracketed) => {
            let (host, port) = bracketed.split_once(']').ok_or(HOST)?;
            host.parse::<Ipv6Addr>().map_err(|_| HOST)?;
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or(PORT)?) })
        }
        None => match text.split_once(':') {
            Some((host, port)) => (name(host).ok_or(HOST)?, Some(port)),
            None => (name(text).ok_or(HOST)?, None),
        },
    };
    let port = match port {
        None => default_port,
        Some(port) => number(port)
            .and_then(|port| port.try_into().ok())
            .filter(|port| *port > 0)
            .ok_or(PORT)?,
    };
    Ok(Place { host: host.to_owned(), port })
}

/// What hosts and masters are called.
fn name(text: &str) -> Option<&str> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (!text.is_empty() && text.bytes().all(is_fit)).then_some(text)
}
