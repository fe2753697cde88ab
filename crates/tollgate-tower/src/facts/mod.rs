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
/// /// use tollgate_tower::{Header, Source};
///
/// let session = |request: &Head<'_>| request.extensions.get::<String>().cloned();
/// let (parts, ()) = http::Request::builder().header("x-client-id", "c1").body(())?.into_parts();
/// assert_eq!(Header::from_static("x-client-id").value(&parts).as_deref(), Some(&b"c1"[..]));
/// assert_eq!(session.value(&parts), None);
/// # Ok::<(), http::Error>(())
/// ```
pub trait Source: Send + Sync + 'static {
    /// The fact of this request, if it is known.
    fn value<'r>(&'r self, request: &Head<'r>) -> Option<Cow<'r, [u8]>>;
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

    /// Whether anything was said of where this fact is found.
    pub(crate) fn knows(&self, fact: &str) -> bool {
        self.of(fact).is_some()
    }

    fn of(&self, fact: &str) -> Option<&[Box<dyn Source>]> {
        self.named.iter().find(|(name, _)| **name == *fact).map(|(_, sources)| &**sources)
    }

    /// What the policy looks at, as far as it is known of this request.
    #[inline]
    pub(crate) fn gather<'r>(&'r self, policy: &'r Policy, request: &Head<'r>) -> Facts<'r> {
        let mut facts = Facts::new();
        for fact in policy.wanted() {
            let name = fact.as_str();
            let value = match self.of(name) {
                Some(sources) => sources.iter().find_map(|source| source.value(request)),
                None => standard(name, request).map(Cow::Borrowed),
            };
            if let Some(value) = value {
                // What cannot be a fact, an empty header or one of kilobytes, is not known.
                let _ = facts.insert(name, value);
            }
        }
        facts
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
            Some(authority) => Some(authority.as_str().as_bytes()),
            None => header::only(request.headers, HOST),
        },
        _ => header::only(request.headers, fact.strip_prefix("header:")?),
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
        for value in ["", &"x".repeat(1025)] {
            let request = parts(Request::get("/").header("x-client-id", value));
            assert_eq!(sources.gather(&policy, &Head::from(&request)).get("client"), None);
        }
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
