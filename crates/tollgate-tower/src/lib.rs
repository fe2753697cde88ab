#![doc = include_str!("lib.md")]

mod address;
mod detach;
mod facts;
mod inbound;
mod keeper;
pub mod outbound;
pub mod pace;
mod strict;

pub use address::{ClientAddress, ProxyHeader, TrustedProxies, TrustedProxiesError};
#[cfg(feature = "axum")]
pub use facts::MatchedRoute;
pub use facts::{ApiKey, Head, Header, PeerAddress, Source};
pub use inbound::{
    Counting, OnError, RateLimit, RateLimitLayer, RateLimitLayerBuilder, Refused, ResponseBody,
    ResponseFuture,
};
pub use keeper::look_after;

/// The examples of the documentation compile.
#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../../../docs/MIDDLEWARE.md")]
struct Documentation;
