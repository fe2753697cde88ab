//! A client of a tenant, as the admin API names it.

use tollgate::policy::Policy;
use tollgate::{ClientId, MAX_FACT_LENGTH, Query, Subject};

use crate::error::ApiError;

/// The fact that identifies a client.
pub(crate) const CLIENT: &str = "client";
/// The fact that identifies a tenant.
pub(crate) const TENANT: &str = "tenant";

/// A client of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) tenant: String,
}

impl Client {
    /// Validates the id.
    pub(crate) fn new(id: String, tenant: String) -> Result<Self, ApiError> {
        let detail = match id.len() {
            0 => "must not be empty".to_owned(),
            length if length > MAX_FACT_LENGTH => {
                format!("must be at most {MAX_FACT_LENGTH} bytes")
            }
            _ => return Ok(Self { id, tenant }),
        };
        Err(ApiError::invalid(detail).at("id"))
    }

    /// Returns the client of a query that the policy decides, if it has the fact `client`.
    pub(crate) fn of_query(query: &Query<'_>, policy: &Policy) -> Option<Self> {
        let Query::ByPolicy(request) = query else { return None };
        let facts = request.facts();
        let text = |fact: &[u8]| String::from_utf8(fact.to_vec()).ok();
        let tenant = facts.get(TENANT).unwrap_or(policy.tenant().as_bytes());
        Some(Self { id: text(facts.get(CLIENT)?)?, tenant: text(tenant)? })
    }

    /// Returns the client as the library names it.
    pub(crate) fn id(&self) -> Result<ClientId, ApiError> {
        let id = ClientId::new(self.id.as_str(), self.tenant.as_str());
        id.ok_or_else(|| ApiError::invalid("must not be empty").at("id"))
    }

    /// Returns the subject under which the overrides of the client are stored.
    pub(crate) fn subject(&self) -> Subject {
        Subject::in_tenant(&self.tenant, [&self.id])
    }

    /// Parses the text of a [`subject`](Self::subject).
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let mut parts = Subject::parse(text)?;
        let id = String::from_utf8(parts.facts.pop()??).ok()?;
        Some(Self { id, tenant: String::from_utf8(parts.tenant).ok()? })
    }
}
