//! Facts of an HTTP request and their sources.

mod header;
mod peer;
mod request_head;
#[cfg(feature = "axum")]
mod route;

use std::borrow::Cow;
use std::fmt;

use http::header::HOST;
use tollgate::policy::{is_secret_header, secret_digest};
use tollgate::{FactValue, Facts, MAX_FACT_LENGTH, Policy};

use crate::address::ClientAddress;
use crate::header_value::single_value;

#[cfg(feature = "axum")]
pub(crate) use header::bearer_token;
pub use header::{ApiKey, Header};
pub use peer::PeerAddress;
pub(crate) use peer::peer_ip;
pub use request_head::RequestHead;
#[cfg(feature = "axum")]
pub use route::MatchedRoute;

/// Extracts a fact from a request. Closures implement it.
///
/// None means that the fact is missing; the policy decides what happens then (`missing: share | skip | deny`).
///
/// ```
/// use tollgate_tower::{RequestHead, Header, FactSource};
///
/// let session = |request: &RequestHead<'_>| request.extensions.get::<String>().cloned();
/// let client = Header::from_static("x-client-id");
/// let request = http::Request::builder().header("x-client-id", "c1").body(())?;
/// assert_eq!(client.value(&RequestHead::from(&request)).as_deref(), Some(&b"c1"[..]));
/// assert_eq!(session.value(&RequestHead::from(&request)), None);
/// # Ok::<(), http::Error>(())
/// ```
pub trait FactSource: Send + Sync + 'static {
    /// Returns the fact of this request, if it has one.
    fn value<'r>(&'r self, request: &RequestHead<'r>) -> Option<Cow<'r, [u8]>>;

    /// Returns the value for the fact with this name, for sources whose value depends on it.
    fn value_as<'r>(&'r self, fact: &str, request: &RequestHead<'r>) -> Option<Cow<'r, [u8]>> {
        let _ = fact;
        self.value(request)
    }

    /// Returns the same as [`value_as`](Self::value_as); the layer calls this method. A source of addresses implements
    /// it to return them without an allocation.
    fn fact_value<'r>(&'r self, fact: &str, request: &RequestHead<'r>) -> Option<FactValue<'r>> {
        self.value_as(fact, request).map(FactValue::from)
    }
}

impl<F> FactSource for F
where
    F: Fn(&RequestHead<'_>) -> Option<String> + Send + Sync + 'static,
{
    fn value<'r>(&'r self, request: &RequestHead<'r>) -> Option<Cow<'r, [u8]>> {
        self(request).map(|text| Cow::Owned(text.into_bytes()))
    }
}

/// The sources of facts by fact name.
#[derive(Default)]
pub(crate) struct FactSources {
    named: Vec<Named>,
    /// How addresses are determined for the facts that the policy defines; `None` to ignore its section `facts`.
    of_policy: Option<ClientAddress>,
}

/// A fact name and its sources in order.
type Named = (Box<str>, Vec<Box<dyn FactSource>>);

impl fmt::Debug for FactSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.named.iter().map(|(name, _)| name)).finish()
    }
}

impl FactSources {
    /// Adds a source for a fact, after the existing ones.
    pub(crate) fn add(&mut self, fact: &str, source: impl FactSource) {
        let source: Box<dyn FactSource> = Box::new(source);
        match self.named.iter_mut().find(|(name, _)| **name == *fact) {
            Some((_, sources)) => sources.push(source),
            None => self.named.push((fact.into(), vec![source])),
        }
    }

    /// Uses the sources that the policy defines, for facts without other sources.
    pub(crate) fn use_policy(&mut self, addresses: ClientAddress) {
        self.of_policy = Some(addresses);
    }

    fn sources(&self, fact: &str) -> Option<&[Box<dyn FactSource>]> {
        self.named.iter().find(|(name, _)| **name == *fact).map(|(_, sources)| &**sources)
    }

    /// Adds the facts that the policy uses.
    #[inline]
    pub(crate) fn gather_into<'r>(
        &'r self,
        facts: &mut Facts<'r>,
        policy: &'r Policy,
        request: &RequestHead<'r>,
    ) {
        policy.collect_facts(facts, |fact| self.value_by(policy, fact.as_str(), request));
    }

    /// Returns the fact `tenant`. It has no built-in source, so most layers have none.
    #[inline]
    pub(crate) fn tenant<'r>(
        &'r self,
        policy: &Policy,
        request: &RequestHead<'r>,
    ) -> Option<FactValue<'r>> {
        if self.named.is_empty() && self.of_policy.is_none() {
            return None;
        }
        self.value_by(policy, "tenant", request)
    }

    /// Returns the value of a fact that the policy uses.
    #[inline]
    pub(crate) fn value_by<'r>(
        &'r self,
        policy: &Policy,
        fact: &str,
        request: &RequestHead<'r>,
    ) -> Option<FactValue<'r>> {
        if let Some(sources) = self.sources(fact) {
            return value_of_first(sources, fact, request);
        }
        if let Some(addresses) = &self.of_policy {
            if let Some(spec) = policy.fact_spec(fact) {
                let ip = peer_ip(request).map(|peer| addresses.resolve(peer, request.headers));
                let value = spec.value(ip, |name| single_value(request.headers, name));
                return value.map(FactValue::from);
            }
            if fact == "ip" || (fact == "client" && self.sources("ip").is_none()) {
                return addresses.fact_value(fact, request);
            }
        }
        self.default_value(fact, request)
    }

    /// Returns a fact without its own sources. By default `client` is `ip`, and `ip` is the peer address.
    #[inline]
    fn default_value<'r>(&'r self, fact: &str, request: &RequestHead<'r>) -> Option<FactValue<'r>> {
        match fact {
            "client" => match self.sources("ip") {
                Some(sources) => Some(counted_address(value_of_first(sources, "ip", request)?)),
                None => peer::network(request),
            },
            "ip" => peer::address(request),
            _ => builtin_fact(fact, request).filter(is_usable),
        }
    }
}

/// Returns the value of the first source that has a usable one.
fn value_of_first<'r>(
    sources: &'r [Box<dyn FactSource>],
    fact: &str,
    request: &RequestHead<'r>,
) -> Option<FactValue<'r>> {
    sources.iter().find_map(|source| source.fact_value(fact, request).filter(is_usable))
}

/// Returns whether a value can be a fact: it is not empty and not above the maximum length.
fn is_usable(value: &FactValue<'_>) -> bool {
    (1..=MAX_FACT_LENGTH).contains(&value.as_bytes().len())
}

/// Converts an address to the form in which clients are counted, IPv6 by its /64.
fn counted_address(address: FactValue<'_>) -> FactValue<'_> {
    let parsed = std::str::from_utf8(address.as_bytes()).ok().and_then(|text| text.parse().ok());
    parsed.map_or(address, |parsed| FactValue::from(ClientAddress::network(parsed)))
}

/// Returns a fact with a built-in source. Headers with secrets are facts only as digests.
fn builtin_fact<'r>(fact: &str, request: &RequestHead<'r>) -> Option<FactValue<'r>> {
    match fact {
        "method" => Some(request.method.as_str().into()),
        // Admission refuses a longer path.
        "path" => Some(request.uri.path().into()),
        "host" => match request.uri.authority() {
            Some(authority) => Some(authority.host().into()),
            None => single_value(request.headers, HOST).map(FactValue::from),
        },
        _ => {
            let name = fact.strip_prefix("header:")?;
            let value = single_value(request.headers, name).filter(|value| !value.is_empty())?;
            Some(if is_secret_header(name) { secret_digest(value) } else { value.into() })
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use tollgate::policy::secret_digest;
    use tollgate::{Facts, Limit, Policy};

    use super::{FactSources, Header, RequestHead};

    fn parts(request: http::request::Builder) -> Request<()> {
        request.body(()).unwrap()
    }

    fn policy(rules: &str) -> Policy {
        let text = format!("version: 1\nrules:\n{rules}");
        Policy::from_yaml("p.yaml", &text, Limit::block()).unwrap()
    }

    impl FactSources {
        fn gather<'r>(&'r self, policy: &'r Policy, request: &RequestHead<'r>) -> Facts<'r> {
            let mut facts = Facts::new();
            self.gather_into(&mut facts, policy, request);
            facts
        }
    }

    #[test]
    fn gathers_only_facts_that_the_policy_uses() {
        let policy = policy(
            "  - { name: a, match: { path: /a, headers: { X-Plan: gold } }, per: [user], limits: [1/s] }",
        );
        let request = Request::get("http://h.example/a?q").header("x-plan", "gold");
        let request = parts(request.header("x-other", "1"));
        let gathered = FactSources::default();
        let gathered = gathered.gather(&policy, &RequestHead::from(&request));
        let facts: Vec<_> = gathered.iter().collect();
        assert_eq!(facts, [("path", &b"/a"[..]), ("header:x-plan", &b"gold"[..])]);
    }

    #[test]
    fn secret_headers_are_facts_only_as_digests() {
        let policy = policy(
            "  - { name: a, per: ['header:authorization', 'header:cookie', 'header:x-plan'], limits: [1/s] }",
        );
        let long = "x".repeat(1025);
        for cookie in ["s3cret", &long] {
            let request = Request::get("/").header("authorization", "s3cret");
            let request = parts(request.header("cookie", cookie).header("x-plan", "gold"));
            let sources = FactSources::default();
            let facts = sources.gather(&policy, &RequestHead::from(&request));
            let digest = secret_digest(b"s3cret");
            assert_eq!(facts.get("header:authorization"), Some(digest.as_bytes()));
            let digest = secret_digest(cookie.as_bytes());
            assert_eq!(facts.get("header:cookie"), Some(digest.as_bytes()));
            assert_eq!(facts.get("header:x-plan"), Some(&b"gold"[..]));
        }
        let empty = parts(Request::get("/").header("cookie", ""));
        let sources = FactSources::default();
        assert_eq!(sources.gather(&policy, &RequestHead::from(&empty)).iter().count(), 0);
    }

    #[test]
    fn first_source_with_a_value_wins() {
        let policy = policy("  - { name: a, limits: [1/s] }");
        let mut sources = FactSources::default();
        sources.add("client", Header::from_static("x-client-id"));
        sources.add("client", |_: &RequestHead<'_>| Some("other".to_owned()));
        let named = parts(Request::get("/").header("x-client-id", "c1"));
        assert_eq!(
            sources.gather(&policy, &RequestHead::from(&named)).get("client"),
            Some(&b"c1"[..])
        );
        let unnamed = parts(Request::get("/"));
        assert_eq!(
            sources.gather(&policy, &RequestHead::from(&unnamed)).get("client"),
            Some(&b"other"[..])
        );
    }

    #[test]
    fn unusable_values_count_as_missing() {
        let policy = policy("  - { name: a, limits: [1/s] }");
        let mut sources = FactSources::default();
        sources.add("client", Header::from_static("x-client-id"));
        let unusable = ["".to_owned(), "x".repeat(1025)];
        for value in &unusable {
            let request = parts(Request::get("/").header("x-client-id", value));
            assert_eq!(sources.gather(&policy, &RequestHead::from(&request)).get("client"), None);
        }
        sources.add("client", |_: &RequestHead<'_>| Some("other".to_owned()));
        for value in &unusable {
            let request = parts(Request::get("/").header("x-client-id", value));
            let facts = sources.gather(&policy, &RequestHead::from(&request));
            assert_eq!(facts.get("client"), Some(&b"other"[..]), "the next source is used");
        }
    }

    #[test]
    fn client_defaults_to_the_address() {
        let policy = policy("  - { name: a, per: [client, ip], limits: [1/s] }");
        let mut sources = FactSources::default();
        sources.add("ip", |_: &RequestHead<'_>| Some("2001:db8:1:2::7".to_owned()));
        let request = parts(Request::get("/"));
        let facts = sources.gather(&policy, &RequestHead::from(&request));
        assert_eq!(facts.get("client"), Some(&b"2001:db8:1:2::"[..]));
        assert_eq!(facts.get("ip"), Some(&b"2001:db8:1:2::7"[..]), "rules match the full address");
    }

    #[test]
    fn host_excludes_user_info_and_port() {
        let policy = policy("  - { name: a, match: { host: h.example }, limits: [1/s] }");
        let request = parts(Request::get("http://me@h.example:80/"));
        let sources = FactSources::default();
        let facts = sources.gather(&policy, &RequestHead::from(&request));
        assert_eq!(facts.get("host"), Some(&b"h.example"[..]));
    }
}
