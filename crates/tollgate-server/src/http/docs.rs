//! The API's description, and a page to browse it with. Neither needs another machine.

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{
    CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};

use super::reply::{Reply, with_header, with_type};

const OPENAPI: &str = include_str!("../../assets/openapi.json");
const PAGE: &str = include_str!("../../assets/docs.html");
const SCRIPT: &str = include_str!("../../assets/docs.js");
const STYLE: &str = include_str!("../../assets/docs.css");
const ICON: &str = include_str!("../../assets/icon.svg");

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

pub(super) async fn openapi() -> Reply {
    asset("application/json", OPENAPI)
}

pub(super) async fn page() -> Reply {
    asset("text/html; charset=utf-8", PAGE)
}

pub(super) async fn script() -> Reply {
    asset("text/javascript; charset=utf-8", SCRIPT)
}

pub(super) async fn style() -> Reply {
    asset("text/css; charset=utf-8", STYLE)
}

pub(super) async fn icon() -> Reply {
    asset("image/svg+xml", ICON)
}

fn asset(kind: &'static str, text: &'static str) -> Reply {
    let kind = HeaderValue::from_static(kind);
    let reply = with_type(StatusCode::OK, kind, Bytes::from_static(text.as_bytes()));
    let reply = with_header(reply, CONTENT_SECURITY_POLICY, POLICY);
    let reply = with_header(reply, X_CONTENT_TYPE_OPTIONS, "nosniff");
    with_header(reply, REFERRER_POLICY, "no-referrer")
}
