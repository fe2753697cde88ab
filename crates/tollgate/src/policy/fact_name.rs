//! Names of facts, and which facts are normalized.

use std::fmt;

use crate::request::{ENTRY_PREFIX, lowercase_header};

use super::fact_spec::SECRET_HEADERS;
use super::path::Syntax;

/// The name of a fact that a rule matches or counts by.
///
/// ```
/// use tollgate::policy::Policy;
///
/// let policy = Policy::builtin();
/// assert_eq!(policy.default_rule().per()[0].as_str(), "client");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FactName {
    name: Box<str>,
    meaning: Meaning,
}

/// How the value of a fact is interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Meaning {
    Plain,
    Method,
    Host,
    Path,
    Ip,
    ApiKey,
    /// A header with a secret, by its position in [`SECRET_HEADERS`].
    SecretHeader(usize),
    Tier,
    Tenant,
    /// All entries of an Envoy descriptor.
    Descriptor,
    /// The domain or one entry of an Envoy descriptor.
    DescriptorPart,
}

impl FactName {
    /// Creates a fact name. Header names (`header:…`) become lower case.
    pub(super) fn new(name: &str) -> Self {
        let name = lowercase_header(name.into());
        let meaning = match &*name {
            "method" => Meaning::Method,
            "host" => Meaning::Host,
            "path" => Meaning::Path,
            "ip" => Meaning::Ip,
            "api_key" => Meaning::ApiKey,
            "tier" => Meaning::Tier,
            "tenant" => Meaning::Tenant,
            "descriptor" => Meaning::Descriptor,
            "domain" => Meaning::DescriptorPart,
            name if name.starts_with(ENTRY_PREFIX) => Meaning::DescriptorPart,
            name => SECRET_HEADERS
                .iter()
                .position(|secret| *secret == name)
                .map_or(Meaning::Plain, Meaning::SecretHeader),
        };
        Self { name: name.into(), meaning }
    }

    pub(super) const fn meaning(&self) -> Meaning {
        self.meaning
    }

    pub(super) fn is_address(&self) -> bool {
        self.meaning == Meaning::Ip
    }

    /// Returns the syntax of patterns with segments.
    pub(super) const fn syntax(&self) -> Syntax {
        match self.meaning {
            Meaning::Descriptor => Syntax::Descriptor,
            _ => Syntax::Path,
        }
    }

    /// Returns whether values can be longer than [`MAX_FACT_LENGTH`](crate::MAX_FACT_LENGTH) bytes.
    pub(super) const fn has_long_values(&self) -> bool {
        matches!(self.meaning, Meaning::Descriptor | Meaning::DescriptorPart)
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for FactName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
