//! Who the client is, against a second and plainer way to find out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::HeaderMap;
use http::header::HeaderValue;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{ProxyHeader, behind, ip, lines};

/// What a proxy may have written of a hop, and the address that it is.
type Hop = (String, Option<IpAddr>);

fn v4() -> impl Strategy<Value = Ipv4Addr> {
    // Half of them are trusted proxies.
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
    let shown = |(address, spelling, port): (Ipv4Addr, u8, u16)| match spelling {
        0 => (address.to_string(), address),
        1 => (format!("{address}:{port}"), address),
        2 => (format!("{}", address.to_ipv6_mapped()), address),
        _ => (format!("[{}]:{port}", address.to_ipv6_mapped()), address),
    };
    let v4 = (v4(), 0..4_u8, any::<u16>()).prop_map(shown);
    let shown = |(address, spelling, port): (Ipv6Addr, u8, u16)| match spelling {
        0 => (address.to_string(), address),
        1 => (format!("[{address}]"), address),
        _ => (format!("[{address}]:{port}"), address),
    };
    let v6 = (v6(), 0..3_u8, any::<u16>()).prop_map(shown);
    prop_oneof![
        4 => v4.prop_map(|(text, address)| (text, Some(IpAddr::V4(address)))),
        3 => v6.prop_map(|(text, address)| (text, Some(IpAddr::V6(address)))),
        1 => prop_oneof!["unknown", "_[a-z]{1,5}", "", "[0-9.]{3}", "x"].prop_map(|text| (text, None)),
    ]
}

/// The same hop as an element of `Forwarded`, with others' parameters around it.
fn element() -> impl Strategy<Value = Hop> {
    let name = prop_oneof![Just("for"), Just("For"), Just("FOR")];
    let beside = "(proto=https?|by=10\\.0\\.0\\.1|host=\"([a-z,;= ]|\\\\\"|\\\\\\\\){0,8}\")?";
    let parts = (hop(), name, beside, beside, any::<bool>());
    parts.prop_map(|((text, address), name, before, after, is_escaped)| {
        let text = if is_escaped { text.replace('.', "\\.") } else { text };
        (format!("{before};{name}=\"{text}\";{after}"), address)
    })
}

/// The address as it is meant: one written as IPv6 by its bits.
fn folded(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) if u128::from(v6) >> 32 == 0xffff => {
            let [.., a, b, c, d] = v6.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        address => address,
    }
}

fn is_proxy(address: IpAddr) -> bool {
    match folded(address) {
        IpAddr::V4(v4) => v4.octets()[0] == 10,
        IpAddr::V6(v6) => v6.octets()[0] == 0xfd || v6 == Ipv6Addr::LOCALHOST,
    }
}

/// The rules once more: of the chain from client to peer, cut after the last that is no address, the last
/// that is no proxy; if all are, the first.
fn client_of(peer: IpAddr, hops: &[Option<IpAddr>]) -> IpAddr {
    let known = hops.iter().rposition(Option::is_none).map_or(0, |at| at + 1);
    let chain: Vec<IpAddr> =
        hops[known..].iter().flatten().copied().chain([peer]).map(folded).collect();
    chain.iter().rfind(|address| !is_proxy(**address)).copied().unwrap_or(chain[0])
}

fn written(name: &'static str, hops: &[Vec<Hop>]) -> HeaderMap {
    let line = |hops: &Vec<Hop>| {
        let texts: Vec<&str> = hops.iter().map(|(text, _)| text.as_str()).collect();
        texts.join(", ")
    };
    lines(name, hops.iter().map(line))
}

fn meant(hops: &[Vec<Hop>]) -> Vec<Option<IpAddr>> {
    hops.iter().flatten().map(|(_, address)| *address).collect()
}

fn peer() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        v4().prop_map(IpAddr::V4),
        v4().prop_map(|address| IpAddr::V6(address.to_ipv6_mapped())),
        v6().prop_map(IpAddr::V6),
    ]
}

/// Bytes that may stand in a header, more of those that mean something.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let telling = prop::sample::select(b"\"\\,;=[]:. \tfor10".to_vec());
    let byte = prop_oneof![3 => telling, 1 => prop_oneof![32..=126_u8, 128..=255_u8]];
    vec(byte, 0..200)
}

proptest! {
    #[test]
    fn x_forwarded_for_as_the_oracle_has_it(
        peer in peer(), hops in vec(vec(hop(), 1..6), 0..6),
    ) {
        let headers = written("x-forwarded-for", &hops);
        let client = behind(ProxyHeader::XForwardedFor).of(peer, &headers);
        prop_assert_eq!(client, client_of(peer, &meant(&hops)));
    }

    #[test]
    fn forwarded_as_the_oracle_has_it(
        peer in peer(), hops in vec(vec(element(), 1..6), 0..6),
    ) {
        let headers = written("forwarded", &hops);
        let client = behind(ProxyHeader::Forwarded).of(peer, &headers);
        prop_assert_eq!(client, client_of(peer, &meant(&hops)), "{:?}", headers);
    }

    #[test]
    fn whatever_a_client_sends_its_proxy_names_it(
        forged in vec(hostile(), 1..4), is_own_line in any::<bool>(),
    ) {
        let own = "203.0.113.7";
        for (header, name, word) in [
            (ProxyHeader::XForwardedFor, "x-forwarded-for", own.to_owned()),
            (ProxyHeader::Forwarded, "forwarded", format!("for={own};by=\"a,\\\"b\"")),
        ] {
            let mut sent = forged.clone();
            if is_own_line {
                sent.push(word.into_bytes());
            } else if let Some(last) = sent.last_mut() {
                last.extend_from_slice(format!(", {word}").as_bytes());
            }
            let client = behind(header).of(ip("10.0.0.1"), &lines(name, &sent));
            prop_assert_eq!(client, ip(own));
        }
    }

    #[test]
    fn no_bytes_panic(peer in peer(), sent in vec(vec(any::<u8>(), 0..300), 0..5)) {
        let sent = sent.iter().filter_map(|line| HeaderValue::from_bytes(line).ok());
        let mut headers = HeaderMap::new();
        for line in sent {
            headers.append("x-forwarded-for", line.clone());
            headers.append("forwarded", line);
        }
        for header in [ProxyHeader::XForwardedFor, ProxyHeader::Forwarded] {
            let client = behind(header).of(peer, &headers);
            prop_assert!(is_proxy(peer) || client == folded(peer));
        }
    }

    #[test]
    fn hostile_bytes_do_not_panic(sent in vec(hostile(), 0..60)) {
        for (header, name) in
            [(ProxyHeader::XForwardedFor, "x-forwarded-for"), (ProxyHeader::Forwarded, "forwarded")]
        {
            let _ = behind(header).of(ip("10.0.0.1"), &lines(name, &sent));
        }
    }
}
