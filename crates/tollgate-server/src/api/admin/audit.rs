//! Pages of the audit log.

use serde::Serialize;
use serde_json::value::RawValue;
use tollgate::Override;

use crate::api::Service;
use crate::error::ApiError;
use crate::node::overrides::{AuditRecord, Change};
#[cfg(test)]
use crate::reference_tests::{names, overrides::AuditedValue};
use crate::wire::override_view::OverrideView;
use crate::wire::time::rfc3339;

/// A page of the audit log, newest entry first.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Audit"))]
pub(crate) struct AuditPage {
    audit: Vec<AuditEntry>,
    /// The cursor of the next page; null on the last page.
    cursor: Option<String>,
}

/// A change.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AuditEntry {
    #[cfg_attr(test, schemars(with = "names::Time"))]
    at: String,
    #[serde(flatten)]
    change: Change,
    /// The value before the change: an override, a policy version, or null.
    #[cfg_attr(test, schemars(with = "AuditedValue"))]
    old: Option<Box<RawValue>>,
    /// The value after the change.
    #[cfg_attr(test, schemars(with = "AuditedValue"))]
    new: Option<Box<RawValue>>,
}

impl Service {
    /// Returns up to `max` audit entries, starting after the cursor of the previous page or at the newest entry.
    pub(crate) async fn audit(
        &self,
        cursor: Option<&str>,
        max: usize,
    ) -> Result<AuditPage, ApiError> {
        let (records, cursor) = self.node().overrides().audit(cursor, max).await?;
        Ok(AuditPage { audit: records.into_iter().map(AuditEntry::new).collect(), cursor })
    }
}

impl AuditEntry {
    fn new(AuditRecord { at, change, old, new }: AuditRecord) -> Self {
        // Values that are not overrides, such as policy versions, use the same fields.
        let json = |override_: Option<Override>, text: Option<&String>| {
            let json = match override_ {
                Some(override_) => serde_json::to_string(&OverrideView::new(&override_)),
                None => serde_json::to_string(&text),
            };
            json.ok().and_then(|json| RawValue::from_string(json).ok())
        };
        let (old, new) = (json(old, change.from.as_ref()), json(new, change.to.as_ref()));
        let change = Change { from: None, to: None, ..change };
        Self { at: rfc3339(at), change, old, new }
    }
}
