//! The dashboard page and its files.

use axum::extract::Path;

use super::assets::{HTML, SCRIPT, STYLE, asset};
use super::reply::Reply;
use crate::error::{ApiError, ApiErrorKind};

const PAGE: &str = include_str!("../../assets/dashboard/index.html");

macro_rules! files {
    ($($name:literal: $kind:expr),* $(,)?) => {
        &[$(($name, $kind, include_str!(concat!("../../assets/dashboard/", $name)))),*]
    };
}

/// Name, content type and content of each file.
const FILES: &[(&str, &str, &str)] = files! {
    "api.js": SCRIPT,
    "audit.js": SCRIPT,
    "blocks.js": SCRIPT,
    "chart-drawing.js": SCRIPT,
    "chart.js": SCRIPT,
    "client-view.js": SCRIPT,
    "confirm.js": SCRIPT,
    "crosshair.js": SCRIPT,
    "dom.js": SCRIPT,
    "events.js": SCRIPT,
    "explanation.js": SCRIPT,
    "format.js": SCRIPT,
    "health.js": SCRIPT,
    "history.js": SCRIPT,
    "limits-table.js": SCRIPT,
    "live.js": SCRIPT,
    "main.js": SCRIPT,
    "node-time.js": SCRIPT,
    "nodes.js": SCRIPT,
    "override-form.js": SCRIPT,
    "override-preview.js": SCRIPT,
    "overrides.js": SCRIPT,
    "paged-list.js": SCRIPT,
    "policy.js": SCRIPT,
    "query.js": SCRIPT,
    "ranges.js": SCRIPT,
    "rates.js": SCRIPT,
    "refusals-by-rule.js": SCRIPT,
    "refused.js": SCRIPT,
    "rollout.js": SCRIPT,
    "route-view.js": SCRIPT,
    "session.js": SCRIPT,
    "stale.js": SCRIPT,
    "style.css": STYLE,
    "table.js": SCRIPT,
    "text.js": SCRIPT,
    "theme.js": SCRIPT,
    "tiles.js": SCRIPT,
    "traffic.js": SCRIPT,
    "usage-bar.js": SCRIPT,
    "why-lookup.js": SCRIPT,
    "why-result.js": SCRIPT,
    "why.js": SCRIPT,
};

pub(super) async fn page() -> Reply {
    asset(HTML, PAGE)
}

pub(super) async fn file(Path(requested): Path<String>) -> Result<Reply, ApiError> {
    let found = FILES.iter().find(|(name, ..)| *name == requested);
    let missing = || ApiError::new(ApiErrorKind::NotFound, "no such dashboard file");
    found.map(|(_, kind, text)| asset(kind, text)).ok_or_else(missing)
}
