//! The facts of a request in the normalized form that rules match and count by.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::net::IpAddr;

use crate::net;
use crate::request::{Facts, MAX_FACT_LENGTH};

use super::digest::{self, Digest};
use super::fact_name::{FactName, Meaning};
use super::fact_spec::SECRET_HEADERS;
use super::tiers::Tiers;

/// The normalized facts of a request, each computed on first use: methods in upper case, hosts in lower case
/// without port, paths without query, API keys and headers with secrets as digests, and the tier of the digest. Rules
/// match and count by the same value, with two exceptions. For `ip`, conditions match the full address and `per` counts by
/// [`net::rate_limit_address`]. For descriptors, `per` counts long values by their digest.
pub(super) struct NormalizedFacts<'v, 'r> {
    facts: &'v Facts<'r>,
    tiers: &'v Tiers,
    tenant: &'v str,
    method: OnceCell<Option<Cow<'v, [u8]>>>,
    host: OnceCell<Option<Cow<'v, [u8]>>>,
    address: OnceCell<Option<IpAddr>>,
    ip: OnceCell<Option<Cow<'v, [u8]>>>,
    api_key: OnceCell<Option<Digest>>,
    secret_headers: OnceCell<[Option<Digest>; SECRET_HEADERS.len()]>,
}

impl<'v, 'r> NormalizedFacts<'v, 'r> {
    pub(super) fn new(facts: &'v Facts<'r>, tiers: &'v Tiers, tenant: &'v str) -> Self {
        Self {
            facts,
            tiers,
            tenant,
            method: OnceCell::new(),
            host: OnceCell::new(),
            address: OnceCell::new(),
            ip: OnceCell::new(),
            api_key: OnceCell::new(),
            secret_headers: OnceCell::new(),
        }
    }

    /// Returns the value that rules count by: that of [`get`](Self::get), or the digest of a value that is too long
    /// for a key. A value that looks like a digest is hashed as well, so that no two values share a counter.
    pub(super) fn counted(&self, fact: &FactName) -> Option<Cow<'_, [u8]>> {
        let value = self.get(fact)?;
        let is_hashed = fact.has_long_values()
            && (value.len() > MAX_FACT_LENGTH || digest::parse(value).is_some());
        Some(if is_hashed {
            Cow::Owned(digest::of_key(value).into())
        } else {
            Cow::Borrowed(value)
        })
    }

    /// Returns the value that rules match. Conditions on `ip` use [`address`](Self::address) instead.
    pub(super) fn get(&self, fact: &FactName) -> Option<&[u8]> {
        match fact.meaning() {
            Meaning::Plain | Meaning::Descriptor | Meaning::DescriptorPart => {
                self.facts.get(fact.as_str())
            }
            Meaning::Method => {
                let method = || self.facts.get("method").map(to_upper);
                self.method.get_or_init(method).as_deref()
            }
            Meaning::Host => {
                let host = || self.facts.get("host").map(|host| to_lower(without_port(host)));
                self.host.get_or_init(host).as_deref()
            }
            Meaning::Path => self.facts.get("path").map(without_query),
            Meaning::Ip => {
                let ip = || self.facts.get("ip").map(|ip| counted_ip(ip, self.address()));
                self.ip.get_or_init(ip).as_deref()
            }
            Meaning::ApiKey => self.api_key(),
            Meaning::SecretHeader(index) => self.secret_header(index),
            Meaning::Tier => self.tier(),
            Meaning::Tenant => Some(self.tenant()).filter(|tenant| !tenant.is_empty()),
        }
    }

    /// Returns the tenant of the request, else that of the policy; empty if neither has one.
    pub(super) fn tenant(&self) -> &[u8] {
        self.facts.get("tenant").unwrap_or(self.tenant.as_bytes())
    }

    /// Returns the value that a condition is matched against: for `ip` the full address.
    pub(super) fn matched_value(&self, fact: &FactName) -> Option<Cow<'_, [u8]>> {
        match self.address() {
            Some(address) if fact.is_address() => Some(address.to_string().into_bytes().into()),
            _ => self.get(fact).map(Cow::Borrowed),
        }
    }

    /// Returns the fact `ip` if it is a valid address.
    pub(super) fn address(&self) -> Option<IpAddr> {
        *self.address.get_or_init(|| self.facts.get("ip").and_then(net::address))
    }

    /// Returns the names of all facts that can have a value, including `tier` and `tenant`, which the policy
    /// can supply.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.facts.iter().map(|(name, _)| name);
        names.filter(|name| !["tier", "tenant"].contains(name)).chain(["tier", "tenant"])
    }

    fn api_key(&self) -> Option<&[u8]> {
        self.api_key.get_or_init(|| self.facts.get("api_key").map(digest::of_key)).as_deref()
    }

    /// Returns the digest of a header. Programs that have the headers of the request give its digest
    /// ([`secret_digest`](super::secret_digest)), because a header can be longer than a fact. Callers of the API give the header
    /// itself; one that looks like a digest is hashed too, because knowing a digest must not be as good as knowing the secret.
    fn secret_header(&self, index: usize) -> Option<&[u8]> {
        let digest_of = |name| {
            let value = self.facts.value(name)?;
            Some(value.as_digest().map_or_else(|| digest::of_key(value.as_bytes()), Box::from))
        };
        let digests = self.secret_headers.get_or_init(|| SECRET_HEADERS.map(digest_of));
        digests.get(index)?.as_deref()
    }

    /// Returns the tier that the policy lists for the API key, else the fact `tier`.
    fn tier(&self) -> Option<&[u8]> {
        let digest = if self.tiers.is_empty() { None } else { self.api_key() };
        let listed = digest.and_then(|digest| self.tiers.tier_of(digest)).map(str::as_bytes);
        listed.or_else(|| self.facts.get("tier"))
    }
}

fn to_upper(method: &[u8]) -> Cow<'_, [u8]> {
    if method.iter().any(u8::is_ascii_lowercase) {
        return Cow::Owned(method.to_ascii_uppercase());
    }
    Cow::Borrowed(method)
}

fn to_lower(host: &[u8]) -> Cow<'_, [u8]> {
    if host.iter().any(u8::is_ascii_uppercase) {
        return Cow::Owned(host.to_ascii_lowercase());
    }
    Cow::Borrowed(host)
}

/// Removes the port and a trailing dot: `[::1]:80` becomes `[::1]`, `a.example:80` and `a.example.` become
/// `a.example`.
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

/// Returns the text that an address is counted by: the /64 network of an IPv6 address. Values that are not
/// addresses are returned unchanged.
fn counted_ip(ip: &[u8], address: Option<IpAddr>) -> Cow<'_, [u8]> {
    // An IPv4 address has only one notation, unless it is written as an IPv6 address.
    let Some(address) = address.filter(|_| ip.contains(&b':')) else { return Cow::Borrowed(ip) };
    let network = net::rate_limit_address(address).to_string().into_bytes();
    if network == ip { Cow::Borrowed(ip) } else { Cow::Owned(network) }
}
