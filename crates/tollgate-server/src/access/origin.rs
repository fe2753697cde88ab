//! Requests that a page of another site has made in someone's browser.

use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN};

use crate::error::{ApiError, ApiErrorKind};

/// What our own page sends with what it asks to be done.
const PAGE: &str = "x-tollgate-request";

/// Whether the request comes from a page that is not ours. Programs send none of these headers.
pub(crate) fn is_foreign(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if site.is_some_and(|site| !matches!(site, b"same-origin" | b"none")) {
        return true;
    }
    let mut origins = headers.get_all(ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => false,
        (Some(origin), None) => !is_ours(origin.as_bytes(), headers),
        (Some(_), Some(_)) => true,
    }
}

/// Lets through what our own page asks to be done: a browser sends its cookies by itself, so more is wanted of who
/// comes with one. No other page can send this header, or JSON, without being allowed to, which none is.
pub(crate) fn ensure_from_page(headers: &HeaderMap) -> Result<(), ApiError> {
    let forbidden = |detail: &str| Err(ApiError::new(ApiErrorKind::Forbidden, detail));
    if is_foreign(headers) || !headers.contains_key(ORIGIN) {
        return forbidden("this is only for pages of this service: Origin is missing or another's");
    }
    if !headers.contains_key(PAGE) {
        return forbidden("X-Tollgate-Request: dashboard is wanted of who comes with a cookie");
    }
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if !kind.eq_ignore_ascii_case(b"application/json") {
        return forbidden("Content-Type: application/json is wanted of who comes with a cookie");
    }
    Ok(())
}

/// Whether the origin is where the request was sent to. The scheme is not compared: TLS may end before us.
fn is_ours(origin: &[u8], headers: &HeaderMap) -> bool {
    let authority =
        [&b"http://"[..], b"https://"].iter().find_map(|scheme| origin.strip_prefix(*scheme));
    let host = headers.get(HOST).map(HeaderValue::as_bytes);
    matches!((authority, host), (Some(origin), Some(host)) if origin.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderName;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let mut map = HeaderMap::new();
        for (name, value) in pairs.iter().map(pair) {
            map.append(name, value);
        }
        map
    }

    #[test]
    fn a_cookie_is_not_enough_to_have_something_done() {
        let whole = [
            ("host", "limits.example"),
            ("origin", "https://limits.example"),
            ("x-tollgate-request", "dashboard"),
            ("content-type", "application/json; charset=utf-8"),
        ];
        assert!(ensure_from_page(&headers(&whole)).is_ok());
        for missing in 1..whole.len() {
            let mut some = whole.to_vec();
            some.remove(missing);
            assert!(ensure_from_page(&headers(&some)).is_err(), "{:?}", whole[missing]);
        }
        for wrong in [("origin", "https://evil.example"), ("content-type", "text/plain")] {
            let mut other = whole.to_vec();
            other.retain(|(name, _)| *name != wrong.0);
            other.push(wrong);
            assert!(ensure_from_page(&headers(&other)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn pages_of_other_sites_are_foreign_and_programs_are_not() {
        let host = ("host", "limits.example:8080");
        let ours = ("origin", "http://limits.example:8080");
        assert!(!is_foreign(&headers(&[host])));
        assert!(!is_foreign(&headers(&[host, ours])));
        assert!(!is_foreign(&headers(&[host, ours, ("sec-fetch-site", "same-origin")])));
        for foreign in [
            ("origin", "http://evil.example"),
            ("origin", "http://limits.example:8081"),
            ("origin", "http://limits.example:8080.evil.example"),
            ("origin", "limits.example:8080"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert!(is_foreign(&headers(&[host, foreign])), "{foreign:?}");
        }
        assert!(is_foreign(&headers(&[host, ours, ours])), "two origins");
        assert!(is_foreign(&headers(&[ours])), "sent to nowhere");
    }
}
