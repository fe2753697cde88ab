//! The dashboard: one page, and the files it is made of.

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

/// Each file with its type and what it holds.
const FILES: &[(&str, &str, &str)] = files! {
    "main.js": SCRIPT,
    "style.css": STYLE,
};

pub(super) async fn page() -> Reply {
    asset(HTML, PAGE)
}

pub(super) async fn file(Path(wanted): Path<String>) -> Result<Reply, ApiError> {
    let found = FILES.iter().find(|(name, ..)| *name == wanted);
    let missing = || ApiError::new(ApiErrorKind::NotFound, "the dashboard has no such file");
    found.map(|(_, kind, text)| asset(kind, text)).ok_or_else(missing)
}
