//! Static files for browsers. They reference no other host.

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY};

use super::reply::{Reply, with_header, with_type};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

pub(super) const HTML: &str = "text/html; charset=utf-8";
pub(super) const SCRIPT: &str = "text/javascript; charset=utf-8";
pub(super) const STYLE: &str = "text/css; charset=utf-8";

pub(super) fn asset(kind: &'static str, text: &'static str) -> Reply {
    let kind = HeaderValue::from_static(kind);
    let reply = with_type(StatusCode::OK, kind, Bytes::from_static(text.as_bytes()));
    let reply = with_header(reply, CONTENT_SECURITY_POLICY, POLICY);
    // After an upgrade, browsers must not combine old and new files.
    let reply = with_header(reply, CACHE_CONTROL, "no-cache");
    with_header(reply, REFERRER_POLICY, "no-referrer")
}
