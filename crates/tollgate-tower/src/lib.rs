#![doc = include_str!("lib.md")]

mod address;
#[cfg(feature = "axum")]
pub mod admin;
mod background;
mod facts;
mod header_value;
mod inbound;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(tollgate_model)]
pub mod models;
pub mod outbound;
pub mod pace;
mod store_maintenance;
mod sync;
pub mod usage;

pub use address::{ClientAddress, ProxyHeader, TrustedProxies, TrustedProxiesError};
#[cfg(feature = "axum")]
pub use facts::MatchedRoute;
pub use facts::{ApiKey, FactSource, Header, PeerAddress, RequestHead};
#[cfg(feature = "axum")]
pub use inbound::MissingDecision;
pub use inbound::{
    BodyMode, CountedResponses, ErrorAction, Estimate, HeldSlots, KeepBody, RateLimit,
    RateLimitDecision, RateLimitLayer, RateLimitLayerBuilder, RefusedRequest, RequestSlots,
    ResponseBody, ResponseFuture, WrapBody,
};
pub use store_maintenance::run_store_maintenance;

/// Compiles the examples of docs/MIDDLEWARE.md.
#[cfg(all(doctest, feature = "axum", feature = "metrics"))]
#[doc = include_str!("../../../docs/MIDDLEWARE.md")]
struct MiddlewareGuide;
