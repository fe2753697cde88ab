//! Messages of Envoy's Rate Limit Service, and of throttlecrab.

use prost::Message;

pub use generated::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
pub use generated::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
pub use generated::envoy::service::ratelimit::v3::rate_limit_service_server::{
    RateLimitService, RateLimitServiceServer,
};
pub use generated::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};

#[allow(
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code"
)]
mod generated {
    include!("../../../crates/tollgate-server/src/grpc/generated/mod.rs");
}

/// `throttlecrab.ThrottleRequest`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ThrottleRequest {
    /// The key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The burst.
    #[prost(int32, tag = "2")]
    pub max_burst: i32,
    /// Tokens that are refilled per period.
    #[prost(int32, tag = "3")]
    pub count_per_period: i32,
    /// The period in seconds.
    #[prost(int32, tag = "4")]
    pub period: i32,
    /// Tokens to take.
    #[prost(int32, tag = "5")]
    pub quantity: i32,
}
