//! The facts and costs of a log line, as a front end would pass them.

use std::borrow::Cow;
use std::cell::Cell;
use std::net::IpAddr;

use tollgate::net::rate_limit_address;
use tollgate::policy::{FactSpec, Policy, SourceSpec, is_secret_header, secret_digest};
use tollgate::{Costs, FactValue, Facts};

use super::line::{FactNames, unit_of_cost};

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

    pub(super) fn build<'v>(
        &'v self,
        values: impl Iterator<Item = (u8, &'v [u8])>,
    ) -> (Facts<'v>, Costs) {
        let mut facts = Facts::new();
        let mut ip: &[u8] = &[];
        let mut has_client = false;
        let mut amounts: Vec<(&str, u64)> = Vec::new();
        for (index, value) in values {
            self.seen
                .set(self.seen.get() | 1_u32.checked_shl(u32::from(index)).unwrap_or_default());
            let Some(name) = self.names.get(index) else { continue };
            if let Some(unit) = unit_of_cost(name) {
                let amount = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                amounts.push((unit, amount.unwrap_or_default()));
                continue;
            }
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
        (facts, costs(amounts))
    }

    /// Returns whether a line had this fact.
    pub(super) fn has_seen(&self, name: &str) -> bool {
        let index = (0..).map_while(|index| self.names.get(index)).position(|known| known == name);
        index.is_some_and(|index| self.seen.get() >> index & 1 == 1)
    }
}

/// Returns the costs of a line: one request, unless a field has the number of requests.
fn costs(mut amounts: Vec<(&str, u64)>) -> Costs {
    let one = Costs::requests(1);
    if amounts.is_empty() {
        return one;
    }
    if amounts.iter().all(|(unit, _)| *unit != "requests") {
        amounts.push(("requests", 1));
    }
    // The command line has checked the units.
    Costs::of(amounts).unwrap_or(one)
}

/// Returns the facts with those that the policy's section `facts` defines: from the address, and from the headers that
/// the log contains as `header:NAME`. A fact without a source is missing, and headers with secrets are digests, as in
/// forward auth.
pub(super) fn defined_facts<'f>(policy: &Policy, facts: Facts<'f>) -> Facts<'f> {
    let specs = policy.fact_specs();
    if specs.is_empty() && !facts.iter().any(|(name, _)| is_secret(name)) {
        return facts;
    }
    let facts = facts.into_owned();
    let text =
        |value: &[u8]| std::str::from_utf8(value).ok().and_then(|text| text.parse::<IpAddr>().ok());
    let ip = facts.get("ip").and_then(text);
    let mut defined = Facts::new();
    let kept =
        facts.iter().filter(|(name, _)| specs.iter().all(|spec| spec.name().as_str() != *name));
    for (name, value) in kept {
        let value =
            if is_secret(name) { secret_digest(value) } else { FactValue::from(value.to_vec()) };
        let _ = defined.insert(name.to_owned(), value);
    }
    for spec in specs {
        let value = spec.value(ip, |header| facts.get(&format!("header:{header}")));
        if let Some(value) = value {
            let _ = defined.insert(spec.name().as_str().to_owned(), value.into_owned());
        }
    }
    defined
}

/// Returns whether a fact is a header with a secret, of which only the digest is a fact.
fn is_secret(fact: &str) -> bool {
    fact.strip_prefix("header:").is_some_and(is_secret_header)
}

/// Returns the names of the facts that a policy needs from each line: those that it uses, and the headers from which it
/// defines facts.
pub(super) fn needed_facts(policy: &Policy) -> impl Iterator<Item = String> {
    let used = policy.facts_used().iter().map(|fact| fact.as_str().to_owned());
    let sources = policy.fact_specs().iter().flat_map(FactSpec::sources);
    let headers = sources.filter_map(|source| match source {
        SourceSpec::Header(name) | SourceSpec::HeaderDigest(name) => Some(format!("header:{name}")),
        _ => None,
    });
    used.chain(headers)
}

/// Returns the fact `client` of a request from this address: the address, or the /64 network of an IPv6 address.
/// The policy can define it differently: see [`defined_facts`].
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
