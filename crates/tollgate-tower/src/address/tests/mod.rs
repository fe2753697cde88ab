//! Client address examples.

mod properties;

use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};

use http::{HeaderMap, HeaderValue};

use super::{ClientAddress, ProxyHeader, TrustedProxies};
use tollgate::net::{MAX_FORWARDED_BYTES, MAX_HOPS};

const PROXIES: [&str; 3] = ["10.0.0.0/8", "fd00::/8", "::1"];

fn resolver(header: ProxyHeader) -> ClientAddress {
    ClientAddress::behind_proxies(TrustedProxies::parse(PROXIES).unwrap().with_header(header))
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

/// Returns the client of a request from the proxy 10.0.0.1 with these header lines.
fn by_x_forwarded_for<T: AsRef<[u8]>>(values: impl IntoIterator<Item = T>) -> String {
    let headers = lines("x-forwarded-for", values);
    resolver(ProxyHeader::XForwardedFor).resolve(ip("10.0.0.1"), &headers).to_string()
}

fn by_forwarded<T: AsRef<[u8]>>(values: impl IntoIterator<Item = T>) -> String {
    let headers = lines("forwarded", values);
    resolver(ProxyHeader::Forwarded).resolve(ip("10.0.0.1"), &headers).to_string()
}

#[test]
fn ignores_headers_of_untrusted_peer() {
    let mut headers = lines("x-forwarded-for", ["1.1.1.1", "10.0.0.2"]);
    headers.extend(lines("forwarded", ["for=1.1.1.1"]));
    for addresses in [
        ClientAddress::peer(),
        ClientAddress::behind_proxies(TrustedProxies::parse([""; 0]).unwrap()),
        resolver(ProxyHeader::XForwardedFor),
        resolver(ProxyHeader::Forwarded),
    ] {
        for peer in ["192.0.2.1", "2001:db8::1"] {
            assert_eq!(addresses.resolve(ip(peer), &headers), ip(peer));
        }
    }
}

#[test]
fn client_is_first_untrusted_hop_from_the_right() {
    for (values, client) in [
        (vec!["203.0.113.7"], "203.0.113.7"),
        (vec!["1.1.1.1, 203.0.113.7"], "203.0.113.7"),
        (vec!["1.1.1.1,203.0.113.7 ,\t10.9.9.9"], "203.0.113.7"),
        (vec!["1.1.1.1", "203.0.113.7, 10.0.0.3", "10.0.0.2"], "203.0.113.7"),
        (vec!["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        (vec!["fd00::5, ::1"], "fd00::5"),
        (vec![], "10.0.0.1"),
    ] {
        assert_eq!(by_x_forwarded_for(&values), client, "{values:?}");
    }
}

#[test]
fn invalid_hop_makes_its_proxy_the_client() {
    for hop in ["unknown", "_hidden", "", " ", "256.1.1.1", "1.2.3", "\"1.1.1.1\"", "1.1.1.1 x"] {
        assert_eq!(by_x_forwarded_for([hop]), "10.0.0.1", "{hop:?}");
        assert_eq!(by_x_forwarded_for([format!("1.1.1.1, {hop}, 10.0.0.2")]), "10.0.0.2");
    }
    assert_eq!(by_x_forwarded_for([&b"1.1.1.1, \xff\xfe"[..]]), "10.0.0.1");
}

#[test]
fn accepts_hops_with_ports_and_brackets() {
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
fn ipv4_mapped_addresses_count_as_ipv4() {
    let headers =
        lines("x-forwarded-for", ["::ffff:203.0.113.7, ::FFFF:a00:3, [::ffff:10.0.0.2]:80"]);
    for net in ["10.0.0.0/8", "::ffff:10.0.0.0/104", "::ffff:a00:0/104"] {
        let addresses = ClientAddress::behind_proxies(TrustedProxies::parse([net]).unwrap());
        for peer in ["10.0.0.1", "::ffff:10.0.0.1", "::ffff:0a00:0001"] {
            assert_eq!(addresses.resolve(ip(peer), &headers), ip("203.0.113.7"), "{net} {peer}");
        }
        assert_eq!(addresses.resolve(ip("::ffff:192.0.2.1"), &headers), ip("192.0.2.1"));
    }
    let host = TrustedProxies::parse(["::ffff:10.0.0.1"]).unwrap();
    assert!(host.trusts(ip("10.0.0.1")) && !host.trusts(ip("10.0.0.2")));
    // `::/0` does not include IPv4.
    assert!(!TrustedProxies::parse(["::/0"]).unwrap().trusts(ip("::ffff:10.0.0.1")));
}

#[test]
fn reads_only_the_configured_header() {
    let mut headers = lines("x-forwarded-for", ["203.0.113.7"]);
    headers.extend(lines("forwarded", ["for=198.51.100.9"]));
    let client = |header| resolver(header).resolve(ip("10.0.0.1"), &headers);
    assert_eq!(client(ProxyHeader::XForwardedFor), ip("203.0.113.7"));
    assert_eq!(client(ProxyHeader::Forwarded), ip("198.51.100.9"));
}

#[test]
fn parses_forwarded_as_in_rfc_7239() {
    for (values, client) in [
        (vec!["for=192.0.2.60;proto=http;by=203.0.113.43"], "192.0.2.60"),
        (vec!["For=\"[2001:db8:cafe::17]:4711\""], "2001:db8:cafe::17"),
        (vec!["for=192.0.2.43, for=198.51.100.17"], "198.51.100.17"),
        (vec!["for=192.0.2.43", "for=\"[fd00::2]\", for=10.0.0.2"], "192.0.2.43"),
        (vec!["proto=http ; FOR=192.0.2.43 ;; host=\"a, b; for=1.1.1.1\""], "192.0.2.43"),
        (vec!["for=1.1.1.1, for=192.0.2.43;ext=\"\\\",for=9.9.9.9,\\\\\""], "192.0.2.43"),
        (vec!["for=\"1\\92.0.2.4\\3:80\""], "192.0.2.43"),
        (vec!["for=\"192.0.2.43:_web.1\""], "192.0.2.43"),
    ] {
        assert_eq!(by_forwarded(&values), client, "{values:?}");
    }
}

#[test]
fn forwarded_element_without_address_ends_the_chain() {
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

/// A client cannot hide the proxy's element behind an unclosed quote.
#[test]
fn unclosed_quote_does_not_hide_the_client() {
    for forged in ["for=\"", "for=1.1.1.1;x=\"\\", "\"\\\"", "a=\"b\\", "\"\"\""] {
        assert_eq!(by_forwarded([format!("{forged}, for=203.0.113.7")]), "203.0.113.7");
        let quoted = format!("{forged}, for=203.0.113.7, for=\"[fd00::1]\";by=\"a,b\"");
        assert_eq!(by_forwarded([quoted]), "203.0.113.7");
    }
}

#[test]
fn ignores_hops_beyond_the_maximums() {
    let chain = |length| ["203.0.113.7"].into_iter().chain((1..length).map(|_| "10.0.0.2"));
    assert_eq!(by_x_forwarded_for(chain(MAX_HOPS)), "203.0.113.7");
    assert_eq!(by_x_forwarded_for(chain(MAX_HOPS + 1)), "10.0.0.2");
    let joined = |length| [chain(length).collect::<Vec<_>>().join(",")];
    assert_eq!(by_x_forwarded_for(joined(MAX_HOPS)), "203.0.113.7");
    assert_eq!(by_x_forwarded_for(joined(MAX_HOPS + 1)), "10.0.0.2");

    // A truncated element would be a different valid address.
    let padded = |spaces| [format!("198.51.100.9,{}10.0.0.2", " ".repeat(spaces))];
    let max_spaces = MAX_FORWARDED_BYTES - "198.51.100.9,10.0.0.2".len();
    assert_eq!(by_x_forwarded_for(padded(max_spaces)), "198.51.100.9");
    assert_eq!(by_x_forwarded_for(padded(max_spaces + 1)), "10.0.0.2");
    assert_eq!(by_x_forwarded_for(["1".repeat(MAX_FORWARDED_BYTES * 2)]), "10.0.0.1");
    let far = [
        "for=203.0.113.7".to_owned(),
        format!("for=10.0.0.2;x=\"{}\"", "a".repeat(MAX_FORWARDED_BYTES)),
    ];
    assert_eq!(by_forwarded(far), "10.0.0.1");
}

#[test]
fn error_names_the_invalid_entry() {
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
fn addresses_of_one_network_are_one_fact() {
    let network = u128::from(Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 0, 0, 0, 0));
    let fact = |host: u128| ClientAddress::fact_value(Ipv6Addr::from(network | host).into());
    let facts: HashSet<String> = (0..10_000_u128).map(|n| fact(n * 0x1_0000_0001_0001)).collect();
    assert_eq!(facts, HashSet::from(["2001:db8:1:2::".to_owned()]));
    assert_ne!(fact(1 << 64), "2001:db8:1:2::");
}
