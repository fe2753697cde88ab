//! A client of a tenant, as the admin API names it.

use tollgate::policy::Policy;
use tollgate::{MAX_FACT_LENGTH, Query, Subject};

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

    /// Returns the subject under which the override of the client is stored.
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
