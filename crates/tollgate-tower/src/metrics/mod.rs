//! Metrics for the [`metrics`](https://docs.rs/metrics) facade, under the names that the Tollgate server uses.
//!
//! [`MetricsObserver`] records the decisions of a [`Limiter`](tollgate::Limiter), [`record_store_event`] the failures of
//! a [`FallbackStore`](tollgate::FallbackStore). Outbound limiters record with
//! [`record_metrics`](crate::outbound::NamedLimiterBuilder::record_metrics). Install the recorder first: metric handles
//! are resolved once. Labels contain rule and limiter names, never keys.
//!
//! | metric | type | labels |
//! |---|---|---|
//! | `ratelimiter_requests_checked_total` | counter | `result`: `allowed`, `blocked` |
//! | `ratelimiter_check_duration_seconds` | histogram | |
//! | `rate_limit_rejections_total` | counter | `reason`: `local_exhausted`, `distributed_exhausted`, `backend_error` |
//! | `rate_limit_tokens_remaining` | gauge | `scope`: `global` (default limit), `route` (any rule); only limits in requests set it |
//! | `rate_limit_backend_errors_total` | counter | |
//! | `rate_limit_shadow_divergence_total` | counter | `rule` |
//! | `tollgate_rule_checks_total` | counter | `rule`, `result`: `allowed`, `refused` |
//! | `tollgate_would_refuse_total` | counter | `rule`, `trial`: `shadow`, `next` |
//! | `tollgate_degraded_decisions_total` | counter | `by`: `local`, `allow`, `deny` |
//! | `tollgate_breaker_state` | gauge | 0 closed, 1 open |
//! | `tollgate_outbound_calls_total` | counter | `limiter`, `result`: `acquired`, `refused`, `error` |
//! | `tollgate_outbound_wait_seconds` | histogram | `limiter`; calls that waited, so sum / count is the mean wait |

mod observer;
mod outbound;
mod rules;
mod store;

pub use observer::{MetricsObserver, RuleMetrics};
pub(crate) use outbound::OutboundMetrics;
pub use store::record_store_event;
