//! The fields of a decision for the `OpenAPI` document. `decision.rs` writes them by hand, for speed; the tests of the
//! API compare real responses with this schema.

use schemars::JsonSchema;

use crate::reference_tests::names;

/// The decision about a request.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct Decision {
    /// Whether the request may pass.
    allowed: bool,
    /// never: the cost exceeds the limit, so a retry does not help.
    #[schemars(with = "names::Verdict")]
    verdict: &'static str,
    /// The rule that decided; `default` for the default limit and `inline` for inline limits.
    rule: String,
    /// The name of the limit that decided, whose figures are at the top level; null if unlimited.
    limit_name: Option<String>,
    /// The key that the rule counts.
    key: String,
    /// The configured count; null if unlimited.
    limit: Option<u64>,
    /// The capacity; token buckets only.
    #[schemars(skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
    /// The share of this node in degraded mode. count + remaining = share.
    #[schemars(skip_serializing_if = "Option::is_none")]
    share: Option<u64>,
    /// The amount used now.
    count: Option<u64>,
    /// The amount that can be taken now.
    remaining: Option<u64>,
    /// Time in seconds until the same request passes; null if the verdict is allow or never.
    retry_after: Option<f64>,
    /// The same in milliseconds, rounded up.
    retry_after_ms: Option<u64>,
    /// Time in milliseconds until the limit is full again.
    reset_after_ms: Option<u64>,
    /// Where the decision was made. local: on this node, in degraded mode or for rules with distributed off or shadow.
    #[schemars(with = "names::Source")]
    source: &'static str,
    /// Whether a fallback decided because the store is unavailable.
    degraded: bool,
    /// The handle of the held concurrency slots, for /release and /renew.
    #[schemars(skip_serializing_if = "Option::is_none")]
    permit: Option<String>,
    /// When the first of the slots expires.
    #[schemars(with = "names::Time", skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// Every limit that the request takes from.
    limits: Vec<LimitStatus>,
}

/// The decision about a reservation.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct ReserveDecision {
    #[schemars(flatten)]
    decision: Decision,
    /// The reservation, for /settle, /release and /renew; only if it is allowed. It holds the slots too, so there is no
    /// permit.
    #[schemars(skip_serializing_if = "Option::is_none")]
    reservation: Option<String>,
    /// Whether the id had been used before. Then this is the first reservation, the figures are the current ones, and
    /// nothing was taken. Only with a reservation.
    #[schemars(skip_serializing_if = "Option::is_none")]
    repeated: Option<bool>,
}

/// The state of one limit.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only the schema is used")]
struct LimitStatus {
    rule: String,
    name: String,
    /// What the limit counts; requests by default.
    #[schemars(with = "names::LimitName")]
    unit: String,
    #[schemars(with = "names::Algorithm")]
    algorithm: &'static str,
    limit: u64,
    #[schemars(skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
    window_ms: Option<u64>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    /// The share of this node in degraded mode. count + remaining = share.
    #[schemars(skip_serializing_if = "Option::is_none")]
    share: Option<u64>,
    count: u64,
    remaining: u64,
    /// The amount used beyond the limit, if any: by settlements above the estimate, or because the limit was lowered.
    #[schemars(skip_serializing_if = "Option::is_none")]
    debt: Option<u64>,
    reset_after_ms: u64,
    retry_after_ms: Option<u64>,
    #[schemars(with = "names::Mode")]
    mode: &'static str,
    /// Whether this limit allows the request.
    allowed: bool,
}
