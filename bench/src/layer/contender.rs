//! A hello-world route, bare and behind layers.

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

/// What all clients together may ask in a day: more than they do, because what is measured is passing. And so
/// little for each of many that a key lasts: what has refilled is forgotten, and to make it anew costs more.
const BURST_OF_ALL: u32 = 100_000_000;
const DAY_NANOS: u64 = 86_400_000_000_000;

/// What stands before the route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contender {
    /// Nothing.
    Bare,
    /// Our layer; what is left is told.
    Tollgate,
    /// Our layer with a day's and a week's limit.
    TollgateTwo,
    /// Our layer without headers.
    TollgateSilent,
    /// The peer's; what is left is told.
    Governor,
    /// The peer's without headers.
    GovernorSilent,
}

impl Contender {
    pub(super) const ALL: [Self; 6] = [
        Self::Bare,
        Self::Tollgate,
        Self::TollgateTwo,
        Self::TollgateSilent,
        Self::Governor,
        Self::GovernorSilent,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bare => "the route alone",
            Self::Tollgate => "tollgate, one limit, headers",
            Self::TollgateTwo => "tollgate, two limits, headers",
            Self::TollgateSilent => "tollgate, one limit, no headers",
            Self::Governor => "tower_governor, headers",
            Self::GovernorSilent => "tower_governor, no headers",
        }
    }

    /// The peer that does the same, if one can.
    pub(super) const fn peer(self) -> Option<Self> {
        match self {
            Self::Tollgate => Some(Self::Governor),
            Self::TollgateSilent => Some(Self::GovernorSilent),
            _ => None,
        }
    }

    /// The service, counting so many clients by their addresses.
    pub(super) fn router(self, peers: u32) -> Outcome<Router> {
        let burst = BURST_OF_ALL / peers;
        let period = DAY_NANOS / u64::from(burst);
        let route = Router::new().route("/", get(async || "Hello, world!"));
        let one = format!("[{burst}/d]");
        let two = format!("[{burst}/d, {burst}0/w]");
        Ok(match self {
            Self::Bare => route,
            Self::Tollgate => route.layer(ours(&one)?.build()),
            Self::TollgateTwo => route.layer(ours(&two)?.build()),
            Self::TollgateSilent => {
                route.layer(ours(&one)?.header_styles([] as [HeaderStyle; 0]).build())
            }
            Self::Governor => {
                let mut config = GovernorConfigBuilder::default();
                let mut config = config.per_nanosecond(period).burst_size(burst).use_headers();
                route.layer(GovernorLayer::new(config.finish().ok_or("a valid configuration")?))
            }
            Self::GovernorSilent => {
                let mut config = GovernorConfigBuilder::default();
                let config = config.per_nanosecond(period).burst_size(burst).finish();
                route.layer(GovernorLayer::new(config.ok_or("a valid configuration")?))
            }
        })
    }
}

fn ours(limits: &str) -> Outcome<RateLimitLayerBuilder<MemoryStore>> {
    let text = format!(
        "version: 1\nrules:\n  - {{ name: api, limits: {limits}, algorithm: token_bucket }}\n"
    );
    let policy = Policy::from_yaml("bench", &text, Policy::builtin_limit())?;
    Ok(RateLimitLayer::builder(Limiter::new(MemoryStore::new(), policy)))
}

/// A request of one of so many peers.
pub(super) fn request(peer: u32) -> Outcome<Request> {
    let mut request = Request::get("/").body(Body::empty())?;
    let address = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 | peer));
    request.extensions_mut().insert(ConnectInfo(SocketAddr::new(address, 4711)));
    Ok(request)
}
