//! The parser of Redis URLs.
//!
//! An @ ends the login and is not allowed elsewhere. So a password with an unescaped delimiter is an error, and is
//! never mistaken for a part that messages may show.

use std::net::Ipv6Addr;

use super::Address;
use super::error::{
    AddressError, CLUSTER_DATABASE, DATABASE, FRAGMENT, HOST, MASTER, MULTIPLE_HOSTS, PASSWORD,
    PATH, PORT, SCHEME, SOCKET, SOCKET_HOST, USER,
};
use super::escape::unescaped;
use super::parts::{HostPort, Layout, Login, Secret, Servers};
use super::query::{Form, Query};

/// The default ports of Redis and its sentinels.
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
    // The last @, because a password may contain an unescaped one.
    let (login, host_ports) = match authority.rsplit_once('@') {
        Some((login, host_ports)) => (self::login(login)?, host_ports),
        None => (None, authority),
    };
    let mut query = Query::parse(query, form)?;
    let servers = match form {
        Form::Unix if host_ports.is_empty() => unix(path, &mut query)?,
        Form::Unix => return Err(SOCKET_HOST),
        Form::Single { .. } => network(single(host_ports, path)?, &mut query)?,
        Form::Cluster { .. } => network(cluster(host_ports, path)?, &mut query)?,
        Form::Sentinel { .. } => network(sentinel(host_ports, path, &mut query)?, &mut query)?,
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

fn single(host_port: &str, path: &str) -> Result<Layout, AddressError> {
    if host_port.contains(',') {
        return Err(MULTIPLE_HOSTS);
    }
    Ok(Layout::Single {
        host_port: self::host_port(host_port, REDIS_PORT)?,
        database: database(path)?,
    })
}

fn cluster(seeds: &str, path: &str) -> Result<Layout, AddressError> {
    match database(path) {
        Ok(0) => Ok(Layout::Cluster { seeds: host_ports(seeds, REDIS_PORT)? }),
        _ => Err(CLUSTER_DATABASE),
    }
}

fn sentinel(sentinels: &str, path: &str, query: &mut Query) -> Result<Layout, AddressError> {
    let (master, database) = path.split_once('/').unwrap_or((path, ""));
    Ok(Layout::Sentinel {
        sentinels: host_ports(sentinels, SENTINEL_PORT)?,
        login: query.sentinel_login()?,
        master: name(master).ok_or(MASTER)?.to_owned(),
        database: self::database(database)?,
    })
}

fn database(path: &str) -> Result<u32, AddressError> {
    if path.is_empty() { Ok(0) } else { number(path).ok_or(DATABASE) }
}

/// Parses digits only: `parse` alone would accept a plus sign.
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

fn host_ports(text: &str, default_port: u16) -> Result<Vec<HostPort>, AddressError> {
    text.split(',').map(|text| host_port(text, default_port)).collect()
}

fn host_port(text: &str, default_port: u16) -> Result<HostPort, AddressError> {
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
    Ok(HostPort { host: host.to_owned(), port })
}

/// Returns the text if it is a valid name of a host or master.
fn name(text: &str) -> Option<&str> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (!text.is_empty() && text.bytes().all(is_fit)).then_some(text)
}
