//! The `Host` header of requests to the dashboard, `/api` and `/admin`, and of requests from web pages to decision routes.
//!
//! A page of any site can let its own name resolve to the loopback address, and then read responses of this server as if they were
//! its own (DNS rebinding). The browser still sends the name, so a name that could belong to such a site is refused.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use hyper::header::{HOST, HeaderMap, ORIGIN};

use super::protocol::Peer;
use crate::error::{ApiError, ApiErrorKind};
use crate::settings::AllowedHosts;

const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Refuses a request from this machine whose `Host` could be the name of another site.
pub(super) async fn check(
    State(allowed): State<Arc<AllowedHosts>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let Some(Peer(peer)) = request.extensions().get::<Peer>() else {
        return Err(ApiError::peer_missing());
    };
    if peer.ip().to_canonical().is_loopback() {
        ensure_allowed(request.headers(), &allowed)?;
    }
    Ok(next.run(request).await)
}

/// As [`check`], for requests of pages only: programs may call decision routes under any name.
pub(super) async fn check_page(
    allowed: State<Arc<AllowedHosts>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if is_from_page(request.headers()) {
        check(allowed, request, next).await
    } else {
        Ok(next.run(request).await)
    }
}

/// Returns whether a page in a browser sent a POST request. Browsers add these headers, and programs do not.
pub(super) fn is_from_page(headers: &HeaderMap) -> bool {
    headers.contains_key(ORIGIN) || headers.contains_key(SEC_FETCH_SITE)
}

/// Browsers always send one `Host`. Only programs omit it.
fn ensure_allowed(headers: &HeaderMap, allowed: &AllowedHosts) -> Result<(), ApiError> {
    for host in headers.get_all(HOST) {
        let host = String::from_utf8_lossy(host.as_bytes());
        let name = without_port(&host);
        if !is_local(name) && !allowed.contains(name) {
            let shown: String = name.chars().take(100).collect();
            let detail = format!(
                "requests from this machine may not use the host {shown:?}; use localhost or 127.0.0.1, or start the \
                 server with --allowed-hosts {shown}"
            );
            return Err(ApiError::new(ApiErrorKind::Forbidden, detail));
        }
    }
    Ok(())
}

/// Returns the host of `HOST:PORT` or `[IPV6]:PORT`.
fn without_port(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, after)) if after.is_empty() || after.starts_with(':') => address,
            _ => host,
        },
        None => host.split_once(':').map_or(host, |(name, _)| name),
    }
}

/// Returns whether no site can have this name: an address, `localhost`, or a name without a dot, which is not public.
fn is_local(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_subdomain = |end: &str| {
        name.len() > end.len()
            && name.get(name.len() - end.len()..).is_some_and(|rest| rest.eq_ignore_ascii_case(end))
    };
    name.parse::<IpAddr>().is_ok() || is_subdomain(".localhost") || !name.contains('.')
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn is_allowed(host: &str, allowed: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_bytes(host.as_bytes()).expect("a header"));
        ensure_allowed(&headers, &AllowedHosts::parse(allowed).expect("hosts")).is_ok()
    }

    #[test]
    fn names_of_other_sites_are_refused() {
        for local in [
            "localhost",
            "LOCALHOST:8080",
            "a.localhost",
            "127.0.0.1",
            "127.0.0.1:8080",
            "10.0.0.5:80",
            "[::1]:8080",
            "[::1]",
            "tollgate:8080",
            "",
        ] {
            assert!(is_allowed(local, ""), "{local:?}");
        }
        for foreign in [
            "evil.example",
            "evil.example:8080",
            "evil.example.",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "xlocalhost.evil",
            "[::1.evil.example",
            "[::1].evil.example",
            "a.b]:8080",
            "\u{e9}.example",
        ] {
            assert!(!is_allowed(foreign, "limits.example"), "{foreign:?}");
        }
        for own in ["limits.example", "Limits.Example:8443"] {
            assert!(is_allowed(own, "other.example, limits.example"), "{own:?}");
        }
    }

    #[test]
    fn programs_may_omit_the_host() {
        assert!(ensure_allowed(&HeaderMap::new(), &AllowedHosts::default()).is_ok());
    }
}
