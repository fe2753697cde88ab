//! The settings shared by a layer and its services.

use std::fmt;
use std::sync::Arc;

use http::Method;
use tollgate::{Limiter, LimiterError, Observer};

use super::cost::CostSettings;
use super::headers::HeaderWriter;
use super::refusal::RefusalResponder;
use super::reservation::ReservationSettings;
use crate::facts::{FactSources, RequestHead};

/// What the layer does with a request that the limiter cannot decide because its store failed and has no fallback.
///
/// A [`FallbackStore`](tollgate::FallbackStore) decides, unless too many requests wait for the shared store. Such a
/// request is refused with 503, `Retry-After: 1` and the reason `overloaded` in any case, because the store still
/// counts. So is a request that matches more limits than one plan can hold, so that clients cannot bypass limits by
/// matching more rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ErrorAction {
    /// Calls the service, without rate limit headers.
    #[default]
    Allow,
    /// Refuses the request with 503.
    Refuse,
}

/// Selects requests that are not limited.
pub(super) enum Skip {
    Method(Method),
    Path(Box<str>),
    If(Box<dyn Fn(&RequestHead<'_>) -> bool + Send + Sync>),
}

pub(super) type ErrorCallback = Box<dyn Fn(&LimiterError) + Send + Sync>;

pub(super) struct Settings<S, O: Observer> {
    pub(super) limiter: Arc<Limiter<S, O>>,
    pub(super) sources: FactSources,
    pub(super) skips: Vec<Skip>,
    pub(super) cost: CostSettings,
    pub(super) reservation: ReservationSettings,
    pub(super) headers: HeaderWriter,
    pub(super) refusals: RefusalResponder,
    /// Whether admitted requests carry a `RateLimitDecision`.
    pub(super) exposes_decision: bool,
    pub(super) error_action: ErrorAction,
    pub(super) on_error: Option<ErrorCallback>,
}

impl<S, O: Observer> Settings<S, O> {
    #[inline]
    pub(super) fn is_skipped(&self, request: &RequestHead<'_>) -> bool {
        self.skips.iter().any(|skip| match skip {
            Skip::Method(method) => request.method == *method,
            Skip::Path(path) => request.uri.path() == &**path,
            Skip::If(is_skipped) => is_skipped(request),
        })
    }

    /// Returns whether a response needs nothing of a decision but the status of its deciding limit: no charge is settled
    /// after the response, and the service does not receive the decision.
    pub(super) fn needs_only_status(&self) -> bool {
        !self.exposes_decision && !self.cost.is_settled_after_response()
    }

    pub(super) fn report_error(&self, error: &LimiterError) {
        if let Some(on_error) = &self.on_error {
            on_error(error);
        }
    }
}

/// Omits the limiter, whose keys may be secrets, and closures.
impl<S, O: Observer> fmt::Debug for Settings<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("sources", &self.sources)
            .field("headers", &self.headers)
            .field("error_action", &self.error_action)
            .finish_non_exhaustive()
    }
}
