//! The compared services: a hello-world route without and with rate limit layers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::routing::get;
use tollgate::{HeaderStyle, Limiter, MemoryStore, Policy};
use tollgate_tower::{RateLimitLayer, RateLimitLayerBuilder};
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;

use crate::Outcome;

/// Burst of all clients together, per day. Larger than a run, since allowed requests are measured.
/// Small enough per client that keys do not refill during a run: a full key is dropped, and
/// creating it again costs more.
const BURST_OF_ALL: u32 = 100_000_000;
const DAY_NANOS: u64 = 86_400_000_000_000;

/// The layer in front of the route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Candidate {
    /// No layer.
    NoLayer,
    /// tollgate with one limit and response headers.
    Tollgate,
    /// tollgate with a daily and a weekly limit and response headers.
    TollgateTwoLimits,
    /// tollgate with one limit, without response headers.
    TollgateNoHeaders,
    /// `tower_governor` with response headers.
    Governor,
    /// `tower_governor` without response headers.
    GovernorNoHeaders,
}

impl Candidate {
    pub(super) const ALL: [Self; 6] = [
        Self::NoLayer,
        Self::Tollgate,
        Self::TollgateTwoLimits,
        Self::TollgateNoHeaders,
        Self::Governor,
        Self::GovernorNoHeaders,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::NoLayer => "no layer",
            Self::Tollgate => "tollgate, one limit, headers",
            Self::TollgateTwoLimits => "tollgate, two limits, headers",
            Self::TollgateNoHeaders => "tollgate, one limit, no headers",
            Self::Governor => "tower_governor, headers",
            Self::GovernorNoHeaders => "tower_governor, no headers",
        }
    }

    /// Returns the peer with the same features, if there is one.
    pub(super) const fn peer(self) -> Option<Self> {
        match self {
            Self::Tollgate => Some(Self::Governor),
            Self::TollgateNoHeaders => Some(Self::GovernorNoHeaders),
            _ => None,
        }
    }

    /// Creates the service, with limits for `clients` client addresses.
    pub(super) fn router(self, clients: u32) -> Outcome<Router> {
        let burst = BURST_OF_ALL / clients;
        let period = DAY_NANOS / u64::from(burst);
        let route = Router::new().route("/", get(async || "Hello, world!"));
        let one = format!("[{burst}/d]");
        let two = format!("[{burst}/d, {burst}0/w]");
        Ok(match self {
            Self::NoLayer => route,
            Self::Tollgate => route.layer(tollgate_layer(&one)?.build().keep_body()),
            Self::TollgateTwoLimits => route.layer(tollgate_layer(&two)?.build().keep_body()),
            Self::TollgateNoHeaders => {
                let layer = tollgate_layer(&one)?.header_styles([] as [HeaderStyle; 0]).build();
                route.layer(layer.keep_body())
            }
            Self::Governor => {
                let mut config = GovernorConfigBuilder::default();
                let mut config = config.per_nanosecond(period).burst_size(burst).use_headers();
                route.layer(GovernorLayer::new(
                    config.finish().ok_or("tower_governor rejected the configuration")?,
                ))
            }
            Self::GovernorNoHeaders => {
                let mut config = GovernorConfigBuilder::default();
                let config = config.per_nanosecond(period).burst_size(burst).finish();
                route.layer(GovernorLayer::new(
                    config.ok_or("tower_governor rejected the configuration")?,
                ))
            }
        })
    }
}

fn tollgate_layer(limits: &str) -> Outcome<RateLimitLayerBuilder<MemoryStore>> {
    let text = format!(
        "version: 1\nrules:\n  - {{ name: api, limits: {limits}, algorithm: token_bucket }}\n"
    );
    let policy = Policy::from_yaml("bench", &text, Policy::builtin_limit())?;
    Ok(RateLimitLayer::builder(Limiter::new(MemoryStore::new(), policy)))
}

/// Creates a request from the address of this client.
pub(crate) fn request(client: u32) -> Outcome<Request> {
    let mut request = Request::get("/").body(Body::empty())?;
    let address = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 | client));
    request.extensions_mut().insert(ConnectInfo(SocketAddr::new(address, 4711)));
    Ok(request)
}
