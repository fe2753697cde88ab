//! Forwarding headers: the client is the first address, from the right, that no trusted proxy has.

use std::net::{IpAddr, Ipv6Addr};

use tollgate::net::{MAX_FORWARDED_BYTES, MAX_HOPS, ProxyHeader, TrustedProxies};
use tollgate_testkit::fuzz::Target;

const PROXIES: [&str; 3] = ["10.0.0.0/8", "::1", "fd00::/8"];

const WORDS: [&str; 34] = [
    "10.0.0.1",
    "203.0.113.7",
    "192.0.2.1",
    "::1",
    "fd00::2",
    "2001:db8::1",
    "::ffff:10.0.0.9",
    "[2001:db8::1]:80",
    "[fd00::2]",
    "10.0.0.1:80",
    "203.0.113.7:99999",
    ":_port",
    "unknown",
    "_hidden",
    "for=",
    "For=\"",
    "\"",
    "\\",
    "\\\"",
    ";",
    ",",
    ", ",
    "=",
    "proto=https",
    "by=",
    ";for=10.0.0.2",
    "for=\"[fd00::2]:80\"",
    "\n",
    " ",
    "\t",
    "%eth0",
    "0",
    "é",
    ",,",
];

/// What a client can send before the part of the header that the proxies write.
const FORGED: [&str; 6] =
    ["192.0.2.66", "for=192.0.2.66", "for=\"", "\\", "\"\\\"", "10.0.0.6;\"x"];

#[test]
fn fuzz_forwarded() {
    let proxies = TrustedProxies::parse(PROXIES).unwrap();
    let rfc7239 = proxies.clone().with_header(ProxyHeader::Forwarded);
    let peer: IpAddr = "10.9.9.9".parse().unwrap();
    let other: IpAddr = "198.51.100.1".parse().unwrap();
    let target = Target::new("forwarded", 20_000).dictionary(&WORDS).max_length(12 * 1024);
    let summary = target.run(|input| {
        let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
        let outcome = [&proxies, &rfc7239].map(|proxies| {
            let client = proxies.client_address(peer, lines.iter().copied());
            assert_eq!(proxies.client_address(other, lines.iter().copied()), other);
            assert_eq!(client, client.to_canonical());
            check_forged(proxies, peer, &lines, client);
            (client == peer, proxies.trusts(client))
        });
        let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
        let hops = lines.join(&b',').split(|byte| *byte == b',').count();
        if bytes <= MAX_FORWARDED_BYTES && hops <= MAX_HOPS {
            let client = proxies.client_address(peer, lines.iter().copied());
            assert_eq!(client, model(&proxies, peer, &lines));
        }
        (outcome, hops.min(8))
    });
    assert!(summary.outcomes > 20, "{summary:?}");
}

/// If a proxy has reported a client, nothing to the left changes it: the client itself writes that part. Proxies write
/// balanced quotes.
fn check_forged(proxies: &TrustedProxies, peer: IpAddr, lines: &[&[u8]], client: IpAddr) {
    let is_balanced = |line: &&[u8]| {
        line.iter().filter(|byte| **byte == b'"').count().is_multiple_of(2)
            && !line.contains(&b'\\')
    };
    if proxies.trusts(client) || !lines.iter().all(is_balanced) {
        return;
    }
    let Some((first, rest)) = lines.split_first() else { return };
    for forged in FORGED {
        let joined = [forged.as_bytes(), first].join(&b',');
        let in_line = std::iter::once(&joined[..]).chain(rest.iter().copied());
        let in_line: Vec<_> = in_line.collect();
        assert_eq!(proxies.client_address(peer, in_line.into_iter()), client, "{forged}");
        let before: Vec<_> =
            std::iter::once(forged.as_bytes()).chain(lines.iter().copied()).collect();
        assert_eq!(proxies.client_address(peer, before.into_iter()), client, "{forged}");
    }
}

/// Returns the client of `X-Forwarded-For` without limits on the length.
fn model(proxies: &TrustedProxies, peer: IpAddr, lines: &[&[u8]]) -> IpAddr {
    let list = lines.join(&b',');
    let mut client = peer;
    for hop in list.split(|byte| *byte == b',').rev() {
        let Some(address) = hop_address(hop) else { return client };
        client = address.to_canonical();
        if !proxies.trusts(client) {
            return client;
        }
    }
    client
}

/// Parses an address with an optional port; IPv6 addresses with a port are in brackets.
fn hop_address(hop: &[u8]) -> Option<IpAddr> {
    let hop = std::str::from_utf8(hop).ok()?.trim_matches([' ', '\t', '\n', '\r', '\x0c']);
    if let Ok(address) = hop.parse() {
        return Some(address);
    }
    let (address, port) = match hop.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            (IpAddr::V6(address.parse::<Ipv6Addr>().ok()?), port)
        }
        None => {
            let at = hop.find(':')?;
            (IpAddr::V4(hop[..at].parse().ok()?), &hop[at..])
        }
    };
    let Some(port) = port.strip_prefix(':') else { return port.is_empty().then_some(address) };
    let is_number = (1..6).contains(&port.len()) && port.chars().all(|char| char.is_ascii_digit());
    let is_name = port.len() > 1
        && port.starts_with('_')
        && port[1..].chars().all(|char| char.is_ascii_alphanumeric() || "._-".contains(char));
    (is_number || is_name).then_some(address)
}
