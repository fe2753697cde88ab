//! The generated messages and the trait of the service; `scripts/protos` writes them from `proto/`.

#[cfg(test)]
pub(super) use generated::envoy::config::core::v3::HeaderValue;
pub(super) use generated::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
pub(super) use generated::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::RateLimitOverride;
pub(super) use generated::envoy::service::ratelimit::v3::rate_limit_response::Code;
pub(super) use generated::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
pub(super) use generated::envoy::service::ratelimit::v3::rate_limit_service_server::{
    RateLimitService, RateLimitServiceServer, SERVICE_NAME,
};
pub(super) use generated::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
pub(super) use generated::envoy::r#type::v3::RateLimitUnit;

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
    include!("generated/mod.rs");
}

/// The encoded descriptors of all files, for reflection.
pub(super) const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.bin");

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    /// The sources, in the order of their paths.
    const SOURCES: [&str; 4] = [
        include_str!("../../proto/envoy/config/core/v3/base.proto"),
        include_str!("../../proto/envoy/extensions/common/ratelimit/v3/ratelimit.proto"),
        include_str!("../../proto/envoy/service/ratelimit/v3/rls.proto"),
        include_str!("../../proto/envoy/type/v3/ratelimit_unit.proto"),
    ];

    #[test]
    fn generated_code_is_current() {
        let digest = Sha256::digest(SOURCES.concat());
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let generated = include_str!("generated/sources.sha256").trim();
        assert_eq!(digest, generated, "run scripts/protos");
    }
}
