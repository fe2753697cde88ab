//! The facts of a log line, as a front end would pass them.

use std::borrow::Cow;
use std::cell::Cell;
use std::net::IpAddr;

use tollgate::Facts;
use tollgate::net::rate_limit_address;

use super::line::FactNames;

/// Builds facts from the values of a line, and records which facts the log contains.
#[derive(Debug)]
pub(super) struct RequestFacts {
    names: FactNames,
    /// One bit for each fact that a line had.
    seen: Cell<u32>,
}

impl RequestFacts {
    pub(super) const fn new(names: FactNames) -> Self {
        Self { names, seen: Cell::new(0) }
    }

    pub(super) fn build<'v>(&'v self, values: impl Iterator<Item = (u8, &'v [u8])>) -> Facts<'v> {
        let mut facts = Facts::new();
        let mut ip: &[u8] = &[];
        let mut has_client = false;
        for (index, value) in values {
            self.seen
                .set(self.seen.get() | 1_u32.checked_shl(u32::from(index)).unwrap_or_default());
            let Some(name) = self.names.get(index) else { continue };
            has_client |= name == "client";
            if index == FactNames::IP {
                ip = value;
            }
            // The reader has checked the lengths; an invalid fact is left out.
            let _ = facts.insert(name, value);
        }
        if !has_client && !ip.is_empty() {
            let _ = facts.insert("client", client(ip));
        }
        facts
    }

    /// Returns whether a line had this fact.
    pub(super) fn has_seen(&self, name: &str) -> bool {
        let index = (0..).map_while(|index| self.names.get(index)).position(|known| known == name);
        index.is_some_and(|index| self.seen.get() >> index & 1 == 1)
    }
}

/// Returns the fact `client` of a request from this address: the address, or the /64 network of an IPv6 address. This is
/// the one place that a policy section for the sources of facts would change.
fn client(ip: &[u8]) -> Cow<'_, [u8]> {
    if !ip.contains(&b':') {
        return Cow::Borrowed(ip);
    }
    let address = std::str::from_utf8(ip).ok().and_then(|text| text.parse::<IpAddr>().ok());
    match address {
        Some(address) => Cow::Owned(rate_limit_address(address).to_string().into_bytes()),
        None => Cow::Borrowed(ip),
    }
}
