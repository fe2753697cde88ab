//! The client address of a request that passed proxies.

use std::net::IpAddr;

/// Returns the client of an `X-Forwarded-For` list: the last address that is not private. Proxies append to the list,
/// so clients can invent only entries before it. `None` if the list has no such address.
pub(super) fn client(list: &[u8]) -> Option<&[u8]> {
    let mut entries = list.rsplit(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    entries.find(|entry| address(entry).is_some_and(|address| !is_private(address)))
}

fn address(entry: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(entry).ok()?.parse().ok()
}

fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            address.is_private() || address.is_loopback() || address.is_link_local()
        }
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invented_entries_do_not_change_the_client() {
        let client = |list: &str| {
            client(list.as_bytes()).map(|entry| String::from_utf8_lossy(entry).into_owned())
        };
        assert_eq!(client("203.0.113.7").as_deref(), Some("203.0.113.7"));
        assert_eq!(client("1.2.3.4, 203.0.113.7, 10.0.0.2").as_deref(), Some("203.0.113.7"));
        assert_eq!(client("2001:db8::1, fd00::1").as_deref(), Some("2001:db8::1"));
        assert_eq!(client("-"), None);
        assert_eq!(client("<script>, 127.0.0.1"), None);
    }
}
