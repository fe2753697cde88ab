//! The `OpenAPI` document and the page that displays it. They reference no other host.

use super::assets::{HTML, SCRIPT, STYLE, asset};
use super::reply::Reply;

const OPENAPI: &str = include_str!("../../assets/openapi.json");
const PAGE: &str = include_str!("../../assets/docs.html");
const PAGE_SCRIPT: &str = include_str!("../../assets/docs.js");
const PAGE_STYLE: &str = include_str!("../../assets/docs.css");
const ICON: &str = include_str!("../../assets/icon.svg");

pub(super) async fn openapi() -> Reply {
    asset("application/json", OPENAPI)
}

pub(super) async fn page() -> Reply {
    asset(HTML, PAGE)
}

pub(super) async fn script() -> Reply {
    asset(SCRIPT, PAGE_SCRIPT)
}

pub(super) async fn style() -> Reply {
    asset(STYLE, PAGE_STYLE)
}

pub(super) async fn icon() -> Reply {
    asset("image/svg+xml", ICON)
}
