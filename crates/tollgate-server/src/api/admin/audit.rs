//! Reading the audit log.

use serde::Serialize;
use serde_json::value::RawValue;
use tollgate::{Override, Timestamp};

use super::change::Change;
use super::override_store::{Storage, ensure_available, store_failure};
use crate::app::App;
use crate::error::ApiError;
use crate::wire::override_view::OverrideView;
use crate::wire::time::rfc3339;

/// A page of the audit log, newest entry first.
#[derive(Debug, Serialize)]
pub(crate) struct AuditPage {
    audit: Vec<AuditEntry>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct AuditEntry {
    at: String,
    #[serde(flatten)]
    change: Change,
    old: Option<Box<RawValue>>,
    new: Option<Box<RawValue>>,
}

/// Returns up to `max` entries, starting after the cursor of the previous page or at the newest entry.
pub(crate) async fn audit(
    app: &App,
    cursor: Option<&str>,
    max: usize,
) -> Result<AuditPage, ApiError> {
    let Some(overrides) = app.override_store() else {
        return Ok(AuditPage { audit: Vec::new(), cursor: None });
    };
    match overrides.storage() {
        Storage::Redis { directory, .. } => {
            ensure_available(app)?;
            let entries = directory.audit(cursor, max).await;
            let entries = entries.map_err(|error| store_failure(app, &error))?;
            let next = entries.last().filter(|_| entries.len() >= max).map(|last| last.id.clone());
            // Skips entries that other programs have written.
            let audit = entries.into_iter().filter_map(|entry| {
                let change = serde_json::from_str(&entry.entry).ok()?;
                Some(AuditEntry::new(entry.at, change, entry.old, entry.new))
            });
            Ok(AuditPage { audit: audit.collect(), cursor: next })
        }
        Storage::Local(local) => {
            let invalid = |_| ApiError::invalid("is not a cursor of this endpoint").at("cursor");
            let before = cursor.map(str::parse).transpose().map_err(invalid)?;
            let parse = |text: Option<String>| Override::from_text(&text?).ok();
            let entries = local.audit(before, max).await;
            let next = entries.last().filter(|_| entries.len() >= max).map(|last| last.id);
            let audit = entries.into_iter().map(|entry| {
                let at = Timestamp::from_micros(entry.at_us);
                AuditEntry::new(at, entry.change, parse(entry.old), parse(entry.new))
            });
            Ok(AuditPage { audit: audit.collect(), cursor: next.map(|id| id.to_string()) })
        }
    }
}

impl AuditEntry {
    fn new(at: Timestamp, change: Change, old: Option<Override>, new: Option<Override>) -> Self {
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
