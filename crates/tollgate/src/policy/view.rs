//! A request as a policy sees it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::net::IpAddr;

use crate::facts::Facts;
use crate::net;
use crate::request::Request;

use super::digest::{self, Digest};
use super::fact_name::{FactName, Meaning};
use super::tiers::Tiers;

/// The facts of a request in the one spelling that rules match and key by, each worked out when it is
/// first asked for: methods in upper case, hosts in lower case without a port, paths without a query,
/// API keys by digest, and the tier that a digest stands for. Only of addresses the two differ: rules
/// match all of one, and key by what a customer has.
pub(super) struct View<'v, 'r> {
    facts: &'v Facts<'r>,
    tiers: &'v Tiers,
    tenant: &'v str,
    method: OnceCell<Option<Cow<'v, [u8]>>>,
    host: OnceCell<Option<Cow<'v, [u8]>>>,
    address: OnceCell<Option<IpAddr>>,
    ip: OnceCell<Option<Cow<'v, [u8]>>>,
    api_key: OnceCell<Option<Digest>>,
}

impl<'v, 'r> View<'v, 'r> {
    pub(super) fn new(request: &'v Request<'r>, tiers: &'v Tiers, tenant: &'v str) -> Self {
        Self {
            facts: request.facts(),
            tiers,
            tenant,
            method: OnceCell::new(),
            host: OnceCell::new(),
            address: OnceCell::new(),
            ip: OnceCell::new(),
            api_key: OnceCell::new(),
        }
    }

    /// What rules are keyed by. Conditions on addresses look at the [address](Self::address).
    pub(super) fn get(&self, fact: &FactName) -> Option<&[u8]> {
        match fact.meaning() {
            Meaning::Plain => self.facts.get(fact.as_str()),
            Meaning::Method => {
                let method = || self.facts.get("method").map(upper);
                self.method.get_or_init(method).as_deref()
            }
            Meaning::Host => {
                let host = || self.facts.get("host").map(|host| lower(without_port(host)));
                self.host.get_or_init(host).as_deref()
            }
            Meaning::Path => self.facts.get("path").map(without_query),
            Meaning::Ip => {
                let ip = || self.facts.get("ip").map(|ip| counted(ip, self.address()));
                self.ip.get_or_init(ip).as_deref()
            }
            Meaning::ApiKey => self.api_key(),
            Meaning::Tier => self.tier(),
            Meaning::Tenant => Some(self.tenant()).filter(|tenant| !tenant.is_empty()),
        }
    }

    /// The tenant; empty without one.
    pub(super) fn tenant(&self) -> &[u8] {
        self.facts.get("tenant").unwrap_or(self.tenant.as_bytes())
    }

    /// The value that a condition looked at: of an address all of it, also what is not counted by.
    pub(super) fn looked_at(&self, fact: &FactName) -> Option<Cow<'_, [u8]>> {
        match self.address() {
            Some(address) if fact.is_address() => Some(address.to_string().into_bytes().into()),
            _ => self.get(fact).map(Cow::Borrowed),
        }
    }

    /// The address that the fact `ip` holds.
    pub(super) fn address(&self) -> Option<IpAddr> {
        *self.address.get_or_init(|| self.facts.get("ip").and_then(net::address))
    }

    /// The names of all facts there may be, tier and tenant included.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let given = self.facts.iter().map(|(name, _)| name);
        given.filter(|name| !["tier", "tenant"].contains(name)).chain(["tier", "tenant"])
    }

    fn api_key(&self) -> Option<&[u8]> {
        self.api_key.get_or_init(|| self.facts.get("api_key").map(digest::of_key)).as_deref()
    }

    /// What the policy says of the key goes before what the request says of itself.
    fn tier(&self) -> Option<&[u8]> {
        let of_key = if self.tiers.is_empty() { None } else { self.api_key() };
        let listed = of_key.and_then(|digest| self.tiers.of(digest)).map(str::as_bytes);
        listed.or_else(|| self.facts.get("tier"))
    }
}

fn upper(method: &[u8]) -> Cow<'_, [u8]> {
    if method.iter().any(u8::is_ascii_lowercase) {
        return Cow::Owned(method.to_ascii_uppercase());
    }
    Cow::Borrowed(method)
}

pub(super) fn lower(host: &[u8]) -> Cow<'_, [u8]> {
    if host.iter().any(u8::is_ascii_uppercase) {
        return Cow::Owned(host.to_ascii_lowercase());
    }
    Cow::Borrowed(host)
}

/// `[::1]:80` is `[::1]`, `a.example:80` is `a.example`; so is `a.example.`, its absolute form.
fn without_port(host: &[u8]) -> &[u8] {
    let colon = host.iter().rposition(|byte| *byte == b':');
    let bare = colon.and_then(|colon| host.split_at_checked(colon)).filter(|(name, port)| {
        let is_port = port.iter().skip(1).all(u8::is_ascii_digit);
        is_port && (name.ends_with(b"]") || !name.contains(&b':'))
    });
    let bare = bare.map_or(host, |(name, _)| name);
    bare.strip_suffix(b".").unwrap_or(bare)
}

fn without_query(path: &[u8]) -> &[u8] {
    path.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or(path)
}

/// An IPv6 address is counted by its network. What is no address stays as it is.
fn counted(ip: &[u8], address: Option<IpAddr>) -> Cow<'_, [u8]> {
    // Of an IPv4 address there is only one spelling, unless it is written as an IPv6 one.
    let Some(address) = address.filter(|_| ip.contains(&b':')) else { return Cow::Borrowed(ip) };
    let written = net::rate_limit_address(address).to_string().into_bytes();
    if written == ip { Cow::Borrowed(ip) } else { Cow::Owned(written) }
}
