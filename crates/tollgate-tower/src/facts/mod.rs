//! What is known of an HTTP request, and where it is found.

mod head;
mod header;
mod peer;
#[cfg(feature = "axum")]
mod route;

use std::borrow::Cow;
use std::fmt;

use http::header::HOST;
use tollgate::{Facts, MAX_FACT_LENGTH, Policy};

use crate::address::ClientAddress;
use crate::header_value::only;

pub use head::Head;
pub use header::{ApiKey, Header};
pub use peer::PeerAddress;
#[cfg(feature = "axum")]
pub use route::MatchedRoute;

/// Where a fact of a request is found.
///
/// A closure is one, too. None means that the fact is not known; what then happens the policy says
/// (`missing: share | skip | deny`), so nothing here fails.
///
/// ```
/// use tollgate_tower::{Head, Header, Source};
///
/// let session = |request: &Head<'_>| request.extensions.get::<String>().cloned();
/// let client = Header::from_static("x-client-id");
/// let request = http::Request::builder().header("x-client-id", "c1").body(())?;
/// assert_eq!(client.value(&Head::from(&request)).as_deref(), Some(&b"c1"[..]));
/// assert_eq!(session.value(&Head::from(&request)), None);
/// # Ok::<(), http::Error>(())
/// ```
pub trait Source: Send + Sync + 'static {
    /// The fact of this request, if it is known.
    fn value<'r>(&'r self, request: &Head<'r>) -> Option<Cow<'r, [u8]>>;

    /// The same as the fact of this name, where that makes a difference.
    fn value_as<'r>(&'r self, fact: &str, request: &Head<'r>) -> Option<Cow<'r, [u8]>> {
        let _ = fact;
        self.value(request)
    }
}

impl<F> Source for F
where
    F: Fn(&Head<'_>) -> Option<String> + Send + Sync + 'static,
{
    fn value<'r>(&'r self, request: &Head<'r>) -> Option<Cow<'r, [u8]>> {
        self(request).map(|text| Cow::Owned(text.into_bytes()))
    }
}

/// Where the facts of requests are found, by their names.
#[derive(Default)]
pub(crate) struct Sources {
    named: Vec<Named>,
}

/// A fact and the places to look for it, in their order.
type Named = (Box<str>, Vec<Box<dyn Source>>);

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.named.iter().map(|(name, _)| name)).finish()
    }
}

impl Sources {
    /// One more place to look for a fact, after those there are already.
    pub(crate) fn add(&mut self, fact: &str, source: impl Source) {
        let source: Box<dyn Source> = Box::new(source);
        match self.named.iter_mut().find(|(name, _)| **name == *fact) {
            Some((_, sources)) => sources.push(source),
            None => self.named.push((fact.into(), vec![source])),
        }
    }

    fn of(&self, fact: &str) -> Option<&[Box<dyn Source>]> {
        self.named.iter().find(|(name, _)| **name == *fact).map(|(_, sources)| &**sources)
    }

    /// What the policy looks at, as far as it is known of this request.
    #[inline]
    pub(crate) fn gather<'r>(&'r self, policy: &'r Policy, request: &Head<'r>) -> Facts<'r> {
        let mut facts = Facts::new();
        for fact in policy.facts_used() {
            let name = fact.as_str();
            if let Some(value) = self.value(name, request) {
                // Names are a policy's, each once, and the value fits; only a 33rd fact is left out.
                let _ = facts.insert(name, value);
            }
        }
        facts
    }

    fn value<'r>(&'r self, fact: &str, request: &Head<'r>) -> Option<Cow<'r, [u8]>> {
        match self.of(fact) {
            Some(sources) => {
                sources.iter().find_map(|source| known(source.value_as(fact, request)))
            }
            // Unless said otherwise a client is an address, and an address the peer's.
            None if fact == "client" && self.of("ip").is_some() => {
                Some(by_network(self.value("ip", request)?))
            }
            None if fact == "client" => peer::network(request),
            None if fact == "ip" => peer::address(request),
            None => known(standard(fact, request).map(Cow::Borrowed)),
        }
    }
}

/// What cannot be a fact, an empty header or one of kilobytes, is not known.
fn known(value: Option<Cow<'_, [u8]>>) -> Option<Cow<'_, [u8]>> {
    value.filter(|value| (1..=MAX_FACT_LENGTH).contains(&value.len()))
}

/// Clients are counted by the network that is theirs.
fn by_network(address: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let parsed = std::str::from_utf8(&address).ok().and_then(|text| text.parse().ok());
    match parsed {
        Some(parsed) => Cow::Owned(ClientAddress::fact(parsed).into_bytes()),
        None => address,
    }
}

/// What every request tells of itself.
fn standard<'r>(fact: &str, request: &Head<'r>) -> Option<&'r [u8]> {
    match fact {
        "method" => Some(request.method.as_str().as_bytes()),
        "path" => {
            let path = request.uri.path().as_bytes();
            // A longer path is still under the prefix it begins with.
            Some(path.get(..MAX_FACT_LENGTH).unwrap_or(path))
        }
        "host" => match request.uri.authority() {
            Some(authority) => Some(authority.host().as_bytes()),
            None => only(request.headers, HOST),
        },
        _ => only(request.headers, fact.strip_prefix("header:")?),
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use tollgate::{Limit, Policy};

    use super::{Head, Header, Sources};

    fn parts(request: http::request::Builder) -> Request<()> {
        request.body(()).unwrap()
    }

    fn policy(rules: &str) -> Policy {
        let text = format!("version: 1\nrules:\n{rules}");
        Policy::from_yaml("p.yaml", &text, Limit::block()).unwrap()
    }

    #[test]
    fn only_what_the_policy_looks_at_is_gathered() {
        let policy = policy(
            "  - { name: a, match: { path: /a, headers: { X-Plan: gold } }, per: [user], limits: [1/s] }",
        );
        let request = Request::get("http://h.example/a?q").header("x-plan", "gold");
        let request = parts(request.header("x-other", "1"));
        let gathered = Sources::default();
        let gathered = gathered.gather(&policy, &Head::from(&request));
        let known: Vec<_> = gathered.iter().collect();
        assert_eq!(known, [("path", &b"/a"[..]), ("header:x-plan", &b"gold"[..])]);
    }

    #[test]
    fn the_first_place_that_knows_is_believed() {
        let policy = policy("  - { name: a, limits: [1/s] }");
        let mut sources = Sources::default();
        sources.add("client", Header::from_static("x-client-id"));
        sources.add("client", |_: &Head<'_>| Some("other".to_owned()));
        let named = parts(Request::get("/").header("x-client-id", "c1"));
        assert_eq!(sources.gather(&policy, &Head::from(&named)).get("client"), Some(&b"c1"[..]));
        let unnamed = parts(Request::get("/"));
        assert_eq!(
            sources.gather(&policy, &Head::from(&unnamed)).get("client"),
            Some(&b"other"[..])
        );
    }

    #[test]
    fn what_cannot_be_a_fact_is_not_known() {
        let policy = policy("  - { name: a, limits: [1/s] }");
        let mut sources = Sources::default();
        sources.add("client", Header::from_static("x-client-id"));
        let unusable = ["".to_owned(), "x".repeat(1025)];
        for value in &unusable {
            let request = parts(Request::get("/").header("x-client-id", value));
            assert_eq!(sources.gather(&policy, &Head::from(&request)).get("client"), None);
        }
        sources.add("client", |_: &Head<'_>| Some("other".to_owned()));
        for value in &unusable {
            let request = parts(Request::get("/").header("x-client-id", value));
            let known = sources.gather(&policy, &Head::from(&request));
            assert_eq!(known.get("client"), Some(&b"other"[..]), "it is looked for further");
        }
    }

    #[test]
    fn a_client_is_the_address_unless_said_otherwise() {
        let policy = policy("  - { name: a, per: [client, ip], limits: [1/s] }");
        let mut sources = Sources::default();
        sources.add("ip", |_: &Head<'_>| Some("2001:db8:1:2::7".to_owned()));
        let request = parts(Request::get("/"));
        let known = sources.gather(&policy, &Head::from(&request));
        assert_eq!(known.get("client"), Some(&b"2001:db8:1:2::"[..]));
        assert_eq!(known.get("ip"), Some(&b"2001:db8:1:2::7"[..]), "rules match it in full");
    }

    #[test]
    fn a_host_has_no_user() {
        let policy = policy("  - { name: a, match: { host: h.example }, limits: [1/s] }");
        let request = parts(Request::get("http://me@h.example:80/"));
        let sources = Sources::default();
        let known = sources.gather(&policy, &Head::from(&request));
        assert_eq!(known.get("host"), Some(&b"h.example"[..]));
    }

    #[test]
    fn a_path_too_long_is_known_by_its_beginning() {
        let policy = policy("  - { name: a, match: { path: /files/** }, limits: [1/s] }");
        let request = parts(Request::get(format!("/files/{}", "x".repeat(5000))));
        let sources = Sources::default();
        let facts = sources.gather(&policy, &Head::from(&request));
        assert_eq!(facts.get("path").map(<[u8]>::len), Some(1024));
        let planned = policy.plan(&tollgate::Request::new(facts));
        assert_eq!(planned.rule().name(), "a");
    }
}
