//! The audit, as it is read.

use serde::Serialize;
use serde_json::value::RawValue;
use tollgate::{Override, Timestamp};

use super::change::Change;
use super::override_store::{Place, ensure_available, failed};
use crate::app::App;
use crate::error::ApiError;
use crate::wire::override_view::OverrideView;
use crate::wire::time::rfc3339;

/// A page of the audit, newest first.
#[derive(Debug, Serialize)]
pub(crate) struct AuditPage {
    audit: Vec<Told>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct Told {
    at: String,
    #[serde(flatten)]
    change: Change,
    old: Option<Box<RawValue>>,
    new: Option<Box<RawValue>>,
}

/// Some entries, from the newest or from where a page ended.
pub(crate) async fn audit(
    app: &App,
    cursor: Option<&str>,
    most: usize,
) -> Result<AuditPage, ApiError> {
    let Some(book) = app.override_store() else {
        return Ok(AuditPage { audit: Vec::new(), cursor: None });
    };
    match book.place() {
        Place::Shared { directory, .. } => {
            ensure_available(app)?;
            let entries = directory.audit(cursor, most).await;
            let entries = entries.map_err(|error| failed(app, &error))?;
            let next = entries.last().filter(|_| entries.len() >= most).map(|last| last.id.clone());
            // What others have written there is none of ours.
            let told = entries.into_iter().filter_map(|entry| {
                let change = serde_json::from_str(&entry.entry).ok()?;
                Some(Told::new(entry.at, change, entry.old, entry.new))
            });
            Ok(AuditPage { audit: told.collect(), cursor: next })
        }
        Place::Here(embedded) => {
            let before = cursor
                .map(str::parse)
                .transpose()
                .map_err(|_| ApiError::invalid("no page of the audit ended here").at("cursor"))?;
            let own = |text: Option<String>| text.and_then(|text| Override::from_text(&text).ok());
            let entries = embedded.audit(before, most).await;
            let next = entries.last().filter(|_| entries.len() >= most).map(|last| last.id);
            let told = entries.into_iter().map(|entry| {
                let at = Timestamp::from_micros(entry.at_us);
                Told::new(at, entry.change, own(entry.old), own(entry.new))
            });
            Ok(AuditPage { audit: told.collect(), cursor: next.map(|id| id.to_string()) })
        }
    }
}

impl Told {
    fn new(at: Timestamp, change: Change, old: Option<Override>, new: Option<Override>) -> Self {
        // What is no override, such as the version of a policy, is told in the same place.
        let shown = |own: Option<Override>, other: Option<&String>| {
            let text = match own {
                Some(own) => serde_json::to_string(&OverrideView::of(&own)),
                None => serde_json::to_string(&other),
            };
            text.ok().and_then(|text| RawValue::from_string(text).ok())
        };
        let (old, new) = (shown(old, change.from.as_ref()), shown(new, change.to.as_ref()));
        let change = Change { from: None, to: None, ..change };
        Self { at: rfc3339(at), change, old, new }
    }
}
