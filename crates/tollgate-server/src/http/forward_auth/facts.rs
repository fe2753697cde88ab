//! The facts of the request that a proxy describes.

use std::borrow::Cow;
use std::net::IpAddr;

use hyper::header::{HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use tollgate::net::{TrustedProxies, address_text, rate_limit_address};
use tollgate::policy::{Policy, is_secret_header, secret_digest};
use tollgate::{FactValue, Facts, MAX_FACT_LENGTH, PathError, normalize_path};

use super::Endpoint;
use super::warnings::{ForwardingHeader, Warnings};

/// The request that a proxy received.
#[derive(Debug)]
pub(super) struct OriginalRequest<'r> {
    method: Option<&'r [u8]>,
    path: Option<Cow<'r, [u8]>>,
    host: Option<&'r [u8]>,
    ip: Option<IpAddr>,
    /// Headers of the client, which only a trusted proxy forwards.
    headers: Option<&'r HeaderMap>,
}

/// The reason why a request has to be refused without a decision: it could miss its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FactError {
    Path(PathError),
    /// The header occurs more than once, so that one of the values may be that of the client.
    Repeated(&'static str),
}

impl<'r> OriginalRequest<'r> {
    /// The auth request itself: its peer is no trusted proxy, so that no header is a fact.
    pub(super) fn of_peer(head: &'r Parts, peer: IpAddr) -> Self {
        Self {
            method: Some(head.method.as_str().as_bytes()),
            path: Some(Cow::Borrowed(head.uri.path().as_bytes())),
            host: None,
            ip: Some(peer.to_canonical()),
            headers: None,
        }
    }

    /// The request that a trusted proxy describes. The fact of a missing header stays unknown.
    pub(super) fn forwarded(
        endpoint: Endpoint,
        headers: &'r HeaderMap,
        proxies: &TrustedProxies,
        peer: IpAddr,
        warnings: &Warnings,
    ) -> Result<Self, FactError> {
        use ForwardingHeader as Header;
        let (method, uri, host) = match endpoint {
            Endpoint::Forwarded => {
                (Header::ForwardedMethod, Header::ForwardedUri, Header::ForwardedHost)
            }
            Endpoint::Nginx => (Header::OriginalMethod, Header::OriginalUri, Header::Host),
        };
        let value = |header: Header| -> Result<Option<&'r [u8]>, FactError> {
            // An empty URI is the path `/`. Any other empty header counts as missing.
            let is_value = |value: &&[u8]| header == uri || !value.is_empty();
            let value = single(headers, header.as_str())?.filter(is_value);
            if value.is_none() {
                warnings.warn_about_missing(header, endpoint);
            }
            Ok(value)
        };
        let path = value(uri)?.map(normalize_path).transpose().map_err(FactError::Path)?;
        let addresses = headers.get_all(Header::ForwardedFor.as_str());
        let ip = match addresses.iter().next() {
            Some(_) => {
                let lines = addresses.iter().map(HeaderValue::as_bytes);
                Some(proxies.client_address(peer, lines))
            }
            None => {
                warnings.warn_about_missing(Header::ForwardedFor, endpoint);
                None
            }
        };
        Ok(Self { method: value(method)?, path, host: value(host)?, ip, headers: Some(headers) })
    }

    /// Returns the facts that the policy uses.
    pub(super) fn facts<'p>(&self, policy: &'p Policy) -> Facts<'p>
    where
        'r: 'p,
    {
        let mut facts = Facts::new();
        for fact in policy.facts_used() {
            let name = fact.as_str();
            let value = self.value(policy, name);
            let is_usable =
                |value: &FactValue<'_>| (1..=MAX_FACT_LENGTH).contains(&value.as_bytes().len());
            if let Some(value) = value.filter(is_usable) {
                // Names of a policy are valid and unique; insertion fails only for a 33rd fact.
                let _ = facts.insert(name, value);
            }
        }
        facts
    }

    fn value(&self, policy: &Policy, fact: &str) -> Option<FactValue<'r>> {
        match (fact, policy.fact_spec(fact)) {
            (_, Some(spec)) => spec.value(self.ip, |name| self.header(name)).map(FactValue::from),
            ("method", _) => self.method.map(FactValue::from),
            ("path", _) => self.path.clone().map(FactValue::from),
            ("host", _) => self.host.map(FactValue::from),
            ("ip", _) => self.ip.map(|ip| FactValue::from(address_text(ip))),
            ("client", _) => {
                let ip = self.ip.map(rate_limit_address)?;
                Some(FactValue::from(address_text(ip)))
            }
            (name, _) => {
                let name = name.strip_prefix("header:")?;
                let value = self.header(name).filter(|value| !value.is_empty())?;
                Some(if is_secret_header(name) { secret_digest(value) } else { value.into() })
            }
        }
    }

    /// Returns the value of a header that occurs exactly once.
    fn header(&self, name: &str) -> Option<&'r [u8]> {
        let mut values = self.headers?.get_all(name).iter();
        let value = values.next()?;
        values.next().is_none().then_some(value.as_bytes())
    }
}

/// Returns the value of a forwarding header, or an error if it occurs more than once.
fn single<'r>(headers: &'r HeaderMap, name: &'static str) -> Result<Option<&'r [u8]>, FactError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(_), Some(_)) => Err(FactError::Repeated(name)),
        (value, _) => Ok(value.map(HeaderValue::as_bytes)),
    }
}
