//! Cross-site request checks.

use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN};

use crate::error::{ApiError, ApiErrorKind};

/// Header that the dashboard sends with every write.
const DASHBOARD_HEADER: &str = "x-tollgate-request";

/// Returns whether a page of another site sent the request. Programs send none of these headers.
pub(crate) fn is_cross_site(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if site.is_some_and(|site| !matches!(site, b"same-origin" | b"none")) {
        return true;
    }
    let mut origins = headers.get_all(ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => false,
        (Some(origin), None) => !is_same_host(origin.as_bytes(), headers),
        (Some(_), Some(_)) => true,
    }
}

/// Returns an error unless the dashboard sent the request. Browsers attach cookies to requests of any page, so a session
/// cookie alone is not enough for a write. Other pages cannot send this header or JSON without CORS permission, which
/// the server never grants.
pub(crate) fn ensure_from_dashboard(headers: &HeaderMap) -> Result<(), ApiError> {
    let forbidden = |detail: &str| Err(ApiError::new(ApiErrorKind::Forbidden, detail));
    if is_cross_site(headers) || !headers.contains_key(ORIGIN) {
        return forbidden("the Origin header must be present and name this server");
    }
    if !headers.contains_key(DASHBOARD_HEADER) {
        return forbidden("a write with a session cookie requires X-Tollgate-Request: dashboard");
    }
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if !kind.eq_ignore_ascii_case(b"application/json") {
        return forbidden("a write with a session cookie requires Content-Type: application/json");
    }
    Ok(())
}

/// Returns whether the origin equals the host of the request. Ignores the scheme, because a proxy may terminate TLS.
fn is_same_host(origin: &[u8], headers: &HeaderMap) -> bool {
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
    fn cookie_alone_does_not_permit_writes() {
        let complete = [
            ("host", "limits.example"),
            ("origin", "https://limits.example"),
            ("x-tollgate-request", "dashboard"),
            ("content-type", "application/json; charset=utf-8"),
        ];
        assert!(ensure_from_dashboard(&headers(&complete)).is_ok());
        for missing in 1..complete.len() {
            let mut incomplete = complete.to_vec();
            incomplete.remove(missing);
            let result = ensure_from_dashboard(&headers(&incomplete));
            assert!(result.is_err(), "{:?}", complete[missing]);
        }
        for wrong in [("origin", "https://evil.example"), ("content-type", "text/plain")] {
            let mut changed = complete.to_vec();
            changed.retain(|(name, _)| *name != wrong.0);
            changed.push(wrong);
            assert!(ensure_from_dashboard(&headers(&changed)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn detects_pages_of_other_sites_but_not_programs() {
        let host = ("host", "limits.example:8080");
        let ours = ("origin", "http://limits.example:8080");
        assert!(!is_cross_site(&headers(&[host])));
        assert!(!is_cross_site(&headers(&[host, ours])));
        assert!(!is_cross_site(&headers(&[host, ours, ("sec-fetch-site", "same-origin")])));
        for foreign in [
            ("origin", "http://evil.example"),
            ("origin", "http://limits.example:8081"),
            ("origin", "http://limits.example:8080.evil.example"),
            ("origin", "limits.example:8080"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert!(is_cross_site(&headers(&[host, foreign])), "{foreign:?}");
        }
        assert!(is_cross_site(&headers(&[host, ours, ours])), "two origins");
        assert!(is_cross_site(&headers(&[ours])), "no host");
    }
}
