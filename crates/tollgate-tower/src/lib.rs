#![doc = include_str!("lib.md")]

mod address;
mod background;
mod facts;
mod header_value;
mod inbound;
pub mod outbound;
pub mod pace;
mod store_maintenance;

pub use address::{ClientAddress, ProxyHeader, TrustedProxies, TrustedProxiesError};
#[cfg(feature = "axum")]
pub use facts::MatchedRoute;
pub use facts::{ApiKey, Head, Header, PeerAddress, Source};
pub use inbound::{
    Counting, OnError, RateLimit, RateLimitLayer, RateLimitLayerBuilder, Refused, ResponseBody,
    ResponseFuture,
};
pub use store_maintenance::maintain_store;

/// The examples of the documentation compile.
#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../../../docs/MIDDLEWARE.md")]
struct Documentation;
