//! Who the client is, case by case.

mod properties;

use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};

use http::{HeaderMap, HeaderValue};

use super::hops::{MAX_BYTES, MAX_HOPS};
use super::{ClientAddress, ProxyHeader, TrustedProxies};

const PROXIES: [&str; 3] = ["10.0.0.0/8", "fd00::/8", "::1"];

fn behind(header: ProxyHeader) -> ClientAddress {
    ClientAddress::behind(TrustedProxies::parse(PROXIES).unwrap().reading(header))
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn lines<T: AsRef<[u8]>>(name: &'static str, lines: impl IntoIterator<Item = T>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(name, HeaderValue::from_bytes(line.as_ref()).unwrap());
    }
    headers
}

/// The client of a request that the proxy 10.0.0.1 passed on with these lines.
fn by_x_forwarded_for<T: AsRef<[u8]>>(given: impl IntoIterator<Item = T>) -> String {
    let headers = lines("x-forwarded-for", given);
    behind(ProxyHeader::XForwardedFor).of(ip("10.0.0.1"), &headers).to_string()
}

fn by_forwarded<T: AsRef<[u8]>>(given: impl IntoIterator<Item = T>) -> String {
    let headers = lines("forwarded", given);
    behind(ProxyHeader::Forwarded).of(ip("10.0.0.1"), &headers).to_string()
}

#[test]
fn a_header_of_an_untrusted_peer_changes_nothing() {
    let mut headers = lines("x-forwarded-for", ["1.1.1.1", "10.0.0.2"]);
    headers.extend(lines("forwarded", ["for=1.1.1.1"]));
    for addresses in [
        ClientAddress::peer(),
        ClientAddress::behind(TrustedProxies::parse([""; 0]).unwrap()),
        behind(ProxyHeader::XForwardedFor),
        behind(ProxyHeader::Forwarded),
    ] {
        for peer in ["192.0.2.1", "2001:db8::1"] {
            assert_eq!(addresses.of(ip(peer), &headers), ip(peer));
        }
    }
}

#[test]
fn the_client_is_the_first_untrusted_from_the_right() {
    for (given, client) in [
        (vec!["203.0.113.7"], "203.0.113.7"),
        (vec!["1.1.1.1, 203.0.113.7"], "203.0.113.7"),
        (vec!["1.1.1.1,203.0.113.7 ,\t10.9.9.9"], "203.0.113.7"),
        (vec!["1.1.1.1", "203.0.113.7, 10.0.0.3", "10.0.0.2"], "203.0.113.7"),
        (vec!["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        (vec!["fd00::5, ::1"], "fd00::5"),
        (vec![], "10.0.0.1"),
    ] {
        assert_eq!(by_x_forwarded_for(&given), client, "{given:?}");
    }
}

#[test]
fn what_is_no_address_ends_the_walk_at_the_proxy_that_wrote_it() {
    for hop in ["unknown", "_hidden", "", " ", "256.1.1.1", "1.2.3", "\"1.1.1.1\"", "1.1.1.1 x"] {
        assert_eq!(by_x_forwarded_for([hop]), "10.0.0.1", "{hop:?}");
        assert_eq!(by_x_forwarded_for([format!("1.1.1.1, {hop}, 10.0.0.2")]), "10.0.0.2");
    }
    assert_eq!(by_x_forwarded_for([&b"1.1.1.1, \xff\xfe"[..]]), "10.0.0.1");
}

#[test]
fn hops_may_have_ports_and_brackets() {
    for (hop, client) in [
        ("203.0.113.7:80", "203.0.113.7"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:65535", "2001:db8::1"),
        ("2001:DB8::1", "2001:db8::1"),
        ("203.0.113.7:_port", "203.0.113.7"),
    ] {
        assert_eq!(by_x_forwarded_for([hop]), client);
    }
    for hop in ["203.0.113.7:", "203.0.113.7:x", "203.0.113.7:123456", "[::1", "[::1]80", "[::1]:"]
    {
        assert_eq!(by_x_forwarded_for([hop]), "10.0.0.1", "{hop}");
    }
    for hop in ["[203.0.113.7]", "2001:db8::1]", "2001:db8::1%eth0", "203.0.113.7:_", "[]", ":80"] {
        assert_eq!(by_x_forwarded_for([hop]), "10.0.0.1", "{hop}");
    }
}

#[test]
fn mapped_addresses_are_ipv4_everywhere() {
    let headers =
        lines("x-forwarded-for", ["::ffff:203.0.113.7, ::FFFF:a00:3, [::ffff:10.0.0.2]:80"]);
    for net in ["10.0.0.0/8", "::ffff:10.0.0.0/104", "::ffff:a00:0/104"] {
        let addresses = ClientAddress::behind(TrustedProxies::parse([net]).unwrap());
        for peer in ["10.0.0.1", "::ffff:10.0.0.1", "::ffff:0a00:0001"] {
            assert_eq!(addresses.of(ip(peer), &headers), ip("203.0.113.7"), "{net} {peer}");
        }
        assert_eq!(addresses.of(ip("::ffff:192.0.2.1"), &headers), ip("192.0.2.1"));
    }
    let host = TrustedProxies::parse(["::ffff:10.0.0.1"]).unwrap();
    assert!(host.trusts(ip("10.0.0.1")) && !host.trusts(ip("10.0.0.2")));
    // All of IPv6 is not all of IPv4.
    assert!(!TrustedProxies::parse(["::/0"]).unwrap().trusts(ip("::ffff:10.0.0.1")));
}

#[test]
fn one_header_is_believed_and_not_the_other() {
    let mut headers = lines("x-forwarded-for", ["203.0.113.7"]);
    headers.extend(lines("forwarded", ["for=198.51.100.9"]));
    let client = |header| behind(header).of(ip("10.0.0.1"), &headers);
    assert_eq!(client(ProxyHeader::XForwardedFor), ip("203.0.113.7"));
    assert_eq!(client(ProxyHeader::Forwarded), ip("198.51.100.9"));
}

#[test]
fn forwarded_is_read_as_the_rfc_writes_it() {
    for (given, client) in [
        (vec!["for=192.0.2.60;proto=http;by=203.0.113.43"], "192.0.2.60"),
        (vec!["For=\"[2001:db8:cafe::17]:4711\""], "2001:db8:cafe::17"),
        (vec!["for=192.0.2.43, for=198.51.100.17"], "198.51.100.17"),
        (vec!["for=192.0.2.43", "for=\"[fd00::2]\", for=10.0.0.2"], "192.0.2.43"),
        (vec!["proto=http ; FOR=192.0.2.43 ;; host=\"a, b; for=1.1.1.1\""], "192.0.2.43"),
        (vec!["for=1.1.1.1, for=192.0.2.43;ext=\"\\\",for=9.9.9.9,\\\\\""], "192.0.2.43"),
        (vec!["for=\"1\\92.0.2.4\\3:80\""], "192.0.2.43"),
        (vec!["for=\"192.0.2.43:_web.1\""], "192.0.2.43"),
    ] {
        assert_eq!(by_forwarded(&given), client, "{given:?}");
    }
}

#[test]
fn an_element_that_names_nobody_ends_the_walk() {
    for element in [
        "for=unknown",
        "for=_hidden",
        "for=\"_SEVKISEK\"",
        "for=",
        "for=\"\"",
        "for",
        "proto=https",
        "",
        "junk;for=1.1.1.1",
        "for=1.1.1.1;for=2.2.2.2",
        "for=\"1.1.1.1",
        "for=1.1.1.1\"",
        "for=\"1.1.1.1\\\"",
        "for=\"1.1.1.1\"x",
        "forx=1.1.1.1",
        "for =1.1.1.1",
    ] {
        assert_eq!(by_forwarded([element]), "10.0.0.1", "{element}");
    }
}

/// What a client sends before the proxy's own word cannot swallow it.
#[test]
fn an_open_quote_hides_nobody() {
    for forged in ["for=\"", "for=1.1.1.1;x=\"\\", "\"\\\"", "a=\"b\\", "\"\"\""] {
        assert_eq!(by_forwarded([format!("{forged}, for=203.0.113.7")]), "203.0.113.7");
        let quoted = format!("{forged}, for=203.0.113.7, for=\"[fd00::1]\";by=\"a,b\"");
        assert_eq!(by_forwarded([quoted]), "203.0.113.7");
    }
}

#[test]
fn what_lies_too_far_back_is_not_believed() {
    let chain = |length| ["203.0.113.7"].into_iter().chain((1..length).map(|_| "10.0.0.2"));
    assert_eq!(by_x_forwarded_for(chain(MAX_HOPS)), "203.0.113.7");
    assert_eq!(by_x_forwarded_for(chain(MAX_HOPS + 1)), "10.0.0.2");
    let joined = |length| [chain(length).collect::<Vec<_>>().join(",")];
    assert_eq!(by_x_forwarded_for(joined(MAX_HOPS)), "203.0.113.7");
    assert_eq!(by_x_forwarded_for(joined(MAX_HOPS + 1)), "10.0.0.2");

    // Cut in two it is an address still, of someone else.
    let padded = |spaces| [format!("198.51.100.9,{}10.0.0.2", " ".repeat(spaces))];
    let most = MAX_BYTES - "198.51.100.9,10.0.0.2".len();
    assert_eq!(by_x_forwarded_for(padded(most)), "198.51.100.9");
    assert_eq!(by_x_forwarded_for(padded(most + 1)), "10.0.0.2");
    assert_eq!(by_x_forwarded_for(["1".repeat(MAX_BYTES * 2)]), "10.0.0.1");
    let far =
        ["for=203.0.113.7".to_owned(), format!("for=10.0.0.2;x=\"{}\"", "a".repeat(MAX_BYTES))];
    assert_eq!(by_forwarded(far), "10.0.0.1");
}

#[test]
fn a_bad_entry_is_named() {
    for bad in ["", "10.0.0.0/33", "proxy", "10.0.0.0/", "fd00::/129", "10.0.0.1:80", "10.0.0.1/8"]
    {
        let error = TrustedProxies::parse(["::1", bad]).unwrap_err();
        assert_eq!(error.entry(), bad);
        assert!(error.to_string().contains(&format!("{bad:?}")), "{error}");
    }
    let long = TrustedProxies::parse(["x".repeat(10_000)]).unwrap_err();
    assert!(long.to_string().len() < 200);
}

#[test]
fn ten_thousand_addresses_of_one_network_are_one_fact() {
    let network = u128::from(Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 0, 0, 0, 0));
    let of = |host: u128| ClientAddress::fact(Ipv6Addr::from(network | host).into());
    let facts: HashSet<String> = (0..10_000_u128).map(|n| of(n * 0x1_0000_0001_0001)).collect();
    assert_eq!(facts, HashSet::from(["2001:db8:1:2::".to_owned()]));
    assert_ne!(of(1 << 64), "2001:db8:1:2::");
}
