//! Forward auth: a proxy describes a request by headers, and passes the request on if the response has status 200.

mod facts;
mod reply;
mod warnings;

use std::net::IpAddr;

use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use tollgate::{Query, Refusal};

use self::facts::{FactError, OriginalRequest};
use self::reply::ReplyStyle;
use self::warnings::Warnings;
use super::protocol::Surface;
use super::reply::{Reply, problem};
use crate::access::PresentedToken;
use crate::api::{Credentials, Role, Service, Span};
use crate::error::{ApiError, ApiErrorKind};
use crate::settings::ForwardAuthSettings;

/// The header of the check token. Proxies forward the `Authorization` of the client.
const TOKEN: &str = "x-tollgate-token";

/// A path of forward auth. Each reads only the headers that its proxies set: they pass on the others from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// `/auth`, which reads `X-Forwarded-*`.
    Forwarded,
    /// `/auth/nginx`, which reads `X-Original-*`, and refuses with 403 only.
    Nginx,
}

impl Endpoint {
    /// Returns the endpoint with this path, if the listener serves it.
    #[inline]
    pub(super) fn of(surface: Surface, path: &str) -> Option<Self> {
        match path {
            _ if surface == Surface::Operations => None,
            "/auth" => Some(Self::Forwarded),
            "/auth/nginx" => Some(Self::Nginx),
            _ => None,
        }
    }
}

/// An auth request.
#[derive(Debug, Clone, Copy)]
pub(super) struct AuthRequest<'r> {
    pub(super) endpoint: Endpoint,
    pub(super) head: &'r Parts,
    pub(super) peer: IpAddr,
}

/// The forward auth endpoints of a listener.
#[derive(Debug)]
pub(super) struct ForwardAuth {
    settings: ForwardAuthSettings,
    style: ReplyStyle,
    warnings: Warnings,
}

impl ForwardAuth {
    pub(super) fn new(settings: ForwardAuthSettings) -> Self {
        let style = ReplyStyle::new(settings.header_styles.clone(), settings.body_style);
        Self { settings, style, warnings: Warnings::default() }
    }

    /// Returns whether the peer is a trusted proxy.
    pub(super) fn trusts(&self, peer: IpAddr) -> bool {
        self.settings.proxies.trusts(peer)
    }

    /// Decides the request that the headers describe. `on_authenticated` is called if the token is valid.
    pub(super) async fn respond(
        &self,
        service: &Service,
        request: AuthRequest<'_>,
        span: &mut Span,
        on_authenticated: impl FnOnce(),
    ) -> Reply {
        let reply = match authenticate(service, &request.head.headers, request.peer) {
            Ok(()) => {
                on_authenticated();
                self.decide(service, request, span).await
            }
            Err(error) => problem(&error),
        };
        reply::for_endpoint(request.endpoint, reply)
    }

    async fn decide(&self, service: &Service, request: AuthRequest<'_>, span: &mut Span) -> Reply {
        let AuthRequest { endpoint, head, peer } = request;
        let active = service.active_policy();
        if active.policy().holds_slots() {
            self.warnings.warn_about_slots();
        }
        let proxies = &self.settings.proxies;
        let original = if self.trusts(peer) {
            OriginalRequest::forwarded(endpoint, &head.headers, proxies, peer, &self.warnings)
        } else {
            self.warnings.warn_about_peer(peer, proxies.is_empty());
            Ok(OriginalRequest::of_peer(head, peer))
        };
        let facts = match original {
            Ok(original) => original.facts(active.policy()),
            Err(FactError::Path(error)) => return self.style.refusal(&Refusal::of_path(error)),
            Err(FactError::Repeated(header)) => return problem(&repeated(header)),
        };
        let query = Query::ByPolicy(tollgate::Request::new(facts));
        let decided = service.check(&query, span, |outcome| self.style.decision(outcome)).await;
        decided.unwrap_or_else(|error| match error.kind() {
            ApiErrorKind::Overloaded => self.style.refusal(&Refusal::overloaded()),
            ApiErrorKind::Unavailable => self.style.refusal(&Refusal::undecided()),
            _ => problem(&error),
        })
    }
}

fn repeated(header: &str) -> ApiError {
    ApiError::invalid("occurs more than once; the proxy must replace the header of the client")
        .at(header)
}

fn authenticate(service: &Service, headers: &HeaderMap, peer: IpAddr) -> Result<(), ApiError> {
    if service.is_open(Role::Check) {
        return Ok(());
    }
    let mut values = headers.get_all(TOKEN).iter();
    let token = match (values.next(), values.next()) {
        (None, _) => PresentedToken::Absent,
        (Some(token), None) => PresentedToken::Token(token.as_bytes().trim_ascii()),
        (Some(_), Some(_)) => PresentedToken::Malformed,
    };
    let credentials = Credentials { token, sessions: Vec::new() };
    service.authenticate(Role::Check, &credentials, peer).map_err(|error| match error.kind() {
        ApiErrorKind::TokenMissing => {
            let detail = format!("{error} as `X-Tollgate-Token: TOKEN`");
            ApiError::new(ApiErrorKind::TokenMissing, detail)
        }
        _ => error,
    })
}
