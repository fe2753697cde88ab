//! The address of one hop, optionally with brackets and a port.

use std::net::{IpAddr, Ipv6Addr};

/// Parses a hop as proxies write it: `192.0.2.7`, `192.0.2.7:80`, `2001:db8::1`, `[2001:db8::1]:80`. None if it is not an
/// address.
pub(super) fn parse(hop: &[u8]) -> Option<IpAddr> {
    let hop = std::str::from_utf8(hop).ok()?.trim_ascii();
    let address = match hop.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            let is_complete = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
            address.parse::<Ipv6Addr>().ok().filter(|_| is_complete)?.into()
        }
        None => hop.parse().ok().or_else(|| v4_with_port(hop))?,
    };
    Some(IpAddr::to_canonical(&address))
}

fn v4_with_port(hop: &str) -> Option<IpAddr> {
    let (address, port) = hop.split_once(':')?;
    address.parse().ok().filter(|_| is_port(port)).map(IpAddr::V4)
}

/// Accepts a port number or an obfuscated port (RFC 7239, `obfport`).
fn is_port(port: &str) -> bool {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match port.strip_prefix('_') {
        Some(name) => !name.is_empty() && name.bytes().all(is_name_byte),
        None => (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit()),
    }
}
