//! Client addresses compared with a simpler oracle.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::HeaderMap;
use http::header::HeaderValue;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{ProxyHeader, ip, lines, resolver};

/// A hop as a proxy may write it, and its address if it is one.
type Hop = (String, Option<IpAddr>);

fn v4() -> impl Strategy<Value = Ipv4Addr> {
    // Half are trusted proxies.
    prop_oneof![
        any::<u32>().prop_map(Ipv4Addr::from),
        any::<[u8; 3]>().prop_map(|[b, c, d]| Ipv4Addr::new(10, b, c, d)),
    ]
}

fn v6() -> impl Strategy<Value = Ipv6Addr> {
    let proxy = any::<u128>().prop_map(|bits| Ipv6Addr::from((0xfd << 120) | (bits >> 8)));
    prop_oneof![any::<u128>().prop_map(Ipv6Addr::from), proxy]
}

fn hop() -> impl Strategy<Value = Hop> {
    let with_spelling = |(address, spelling, port): (Ipv4Addr, u8, u16)| match spelling {
        0 => (address.to_string(), address),
        1 => (format!("{address}:{port}"), address),
        2 => (format!("{}", address.to_ipv6_mapped()), address),
        _ => (format!("[{}]:{port}", address.to_ipv6_mapped()), address),
    };
    let v4 = (v4(), 0..4_u8, any::<u16>()).prop_map(with_spelling);
    let with_spelling = |(address, spelling, port): (Ipv6Addr, u8, u16)| match spelling {
        0 => (address.to_string(), address),
        1 => (format!("[{address}]"), address),
        _ => (format!("[{address}]:{port}"), address),
    };
    let v6 = (v6(), 0..3_u8, any::<u16>()).prop_map(with_spelling);
    prop_oneof![
        4 => v4.prop_map(|(text, address)| (text, Some(IpAddr::V4(address)))),
        3 => v6.prop_map(|(text, address)| (text, Some(IpAddr::V6(address)))),
        1 => prop_oneof!["unknown", "_[a-z]{1,5}", "", "[0-9.]{3}", "x"].prop_map(|text| (text, None)),
    ]
}

/// A hop as an element of `Forwarded`, with other parameters around it.
fn element() -> impl Strategy<Value = Hop> {
    let name = prop_oneof![Just("for"), Just("For"), Just("FOR")];
    let other_parameter =
        "(proto=https?|by=10\\.0\\.0\\.1|host=\"([a-z,;= ]|\\\\\"|\\\\\\\\){0,8}\")?";
    let parts = (hop(), name, other_parameter, other_parameter, any::<bool>());
    parts.prop_map(|((text, address), name, before, after, is_escaped)| {
        let text = if is_escaped { text.replace('.', "\\.") } else { text };
        (format!("{before};{name}=\"{text}\";{after}"), address)
    })
}

/// Returns the canonical address, with IPv4-mapped addresses recognised by their bits.
fn canonical(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) if u128::from(v6) >> 32 == 0xffff => {
            let [.., a, b, c, d] = v6.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        address => address,
    }
}

fn is_proxy(address: IpAddr) -> bool {
    match canonical(address) {
        IpAddr::V4(v4) => v4.octets()[0] == 10,
        IpAddr::V6(v6) => v6.octets()[0] == 0xfd || v6 == Ipv6Addr::LOCALHOST,
    }
}

/// The oracle: take the chain from client to peer after the last element that is not an address. The client is the last
/// address that is not a proxy, or the first if all are.
fn expected_client(peer: IpAddr, hops: &[Option<IpAddr>]) -> IpAddr {
    let start = hops.iter().rposition(Option::is_none).map_or(0, |at| at + 1);
    let chain: Vec<IpAddr> =
        hops[start..].iter().flatten().copied().chain([peer]).map(canonical).collect();
    chain.iter().rfind(|address| !is_proxy(**address)).copied().unwrap_or(chain[0])
}

fn headers_of(name: &'static str, hops: &[Vec<Hop>]) -> HeaderMap {
    let line = |hops: &Vec<Hop>| {
        let texts: Vec<&str> = hops.iter().map(|(text, _)| text.as_str()).collect();
        texts.join(", ")
    };
    lines(name, hops.iter().map(line))
}

fn addresses_of(hops: &[Vec<Hop>]) -> Vec<Option<IpAddr>> {
    hops.iter().flatten().map(|(_, address)| *address).collect()
}

fn peer() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        v4().prop_map(IpAddr::V4),
        v4().prop_map(|address| IpAddr::V6(address.to_ipv6_mapped())),
        v6().prop_map(IpAddr::V6),
    ]
}

/// Bytes allowed in a header, biased towards separators.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let separators = prop::sample::select(b"\"\\,;=[]:. \tfor10".to_vec());
    let byte = prop_oneof![3 => separators, 1 => prop_oneof![32..=126_u8, 128..=255_u8]];
    vec(byte, 0..200)
}

proptest! {
    #[test]
    fn x_forwarded_for_matches_oracle(
        peer in peer(), hops in vec(vec(hop(), 1..6), 0..6),
    ) {
        let headers = headers_of("x-forwarded-for", &hops);
        let client = resolver(ProxyHeader::XForwardedFor).resolve(peer, &headers);
        prop_assert_eq!(client, expected_client(peer, &addresses_of(&hops)));
    }

    #[test]
    fn forwarded_matches_oracle(
        peer in peer(), hops in vec(vec(element(), 1..6), 0..6),
    ) {
        let headers = headers_of("forwarded", &hops);
        let client = resolver(ProxyHeader::Forwarded).resolve(peer, &headers);
        prop_assert_eq!(client, expected_client(peer, &addresses_of(&hops)), "{:?}", headers);
    }

    #[test]
    fn forged_headers_do_not_change_the_client(
        forged in vec(hostile(), 1..4), is_separate_line in any::<bool>(),
    ) {
        let client_ip = "203.0.113.7";
        for (header, name, element) in [
            (ProxyHeader::XForwardedFor, "x-forwarded-for", client_ip.to_owned()),
            (ProxyHeader::Forwarded, "forwarded", format!("for={client_ip};by=\"a,\\\"b\"")),
        ] {
            let mut sent = forged.clone();
            if is_separate_line {
                sent.push(element.into_bytes());
            } else if let Some(last) = sent.last_mut() {
                last.extend_from_slice(format!(", {element}").as_bytes());
            }
            let client = resolver(header).resolve(ip("10.0.0.1"), &lines(name, &sent));
            prop_assert_eq!(client, ip(client_ip));
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(peer in peer(), sent in vec(vec(any::<u8>(), 0..300), 0..5)) {
        let sent = sent.iter().filter_map(|line| HeaderValue::from_bytes(line).ok());
        let mut headers = HeaderMap::new();
        for line in sent {
            headers.append("x-forwarded-for", line.clone());
            headers.append("forwarded", line);
        }
        for header in [ProxyHeader::XForwardedFor, ProxyHeader::Forwarded] {
            let client = resolver(header).resolve(peer, &headers);
            prop_assert!(is_proxy(peer) || client == canonical(peer));
        }
    }

    #[test]
    fn hostile_bytes_do_not_panic(sent in vec(hostile(), 0..60)) {
        for (header, name) in
            [(ProxyHeader::XForwardedFor, "x-forwarded-for"), (ProxyHeader::Forwarded, "forwarded")]
        {
            let _ = resolver(header).resolve(ip("10.0.0.1"), &lines(name, &sent));
        }
    }
}
