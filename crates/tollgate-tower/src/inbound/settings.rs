//! What a layer and all its services share.

use std::fmt;
use std::sync::Arc;

use http::Method;
use tollgate::{Limiter, LimiterError, Observer};

use super::cost::Charging;
use super::headers::Telling;
use super::refused::Refusing;
use crate::facts::{Head, Sources};

/// What becomes of a request when the limiter cannot decide, because its store could not be asked and has no fallback.
///
/// A store within a [`FallbackStore`](tollgate::FallbackStore) always decides. A request for which more limits apply
/// than can be taken from at once is refused in any case: nobody is to pass by making more rules match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnError {
    /// It passes, and is told nothing of limits.
    #[default]
    Pass,
    /// It is refused with 503.
    Refuse,
}

/// Requests that no limit is for.
pub(super) enum Skip {
    Method(Method),
    Path(Box<str>),
    If(Box<dyn Fn(&Head<'_>) -> bool + Send + Sync>),
}

/// Hears of errors.
pub(super) type Hear = Box<dyn Fn(&LimiterError) + Send + Sync>;

pub(super) struct Settings<S, O: Observer> {
    pub(super) limiter: Arc<Limiter<S, O>>,
    pub(super) sources: Sources,
    pub(super) skips: Vec<Skip>,
    pub(super) charging: Charging,
    pub(super) telling: Telling,
    pub(super) refusing: Refusing,
    pub(super) on_error: OnError,
    pub(super) hear: Option<Hear>,
}

impl<S, O: Observer> Settings<S, O> {
    pub(super) fn skips(&self, request: &Head<'_>) -> bool {
        self.skips.iter().any(|skip| match skip {
            Skip::Method(method) => request.method == *method,
            Skip::Path(path) => request.uri.path() == &**path,
            Skip::If(is_skipped) => is_skipped(request),
        })
    }

    pub(super) fn failed(&self, error: &LimiterError) {
        if let Some(hear) = &self.hear {
            hear(error);
        }
    }
}

/// Without the limiter, whose keys may be secrets, and without closures, which have nothing to show.
impl<S, O: Observer> fmt::Debug for Settings<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("sources", &self.sources)
            .field("telling", &self.telling)
            .field("on_error", &self.on_error)
            .finish_non_exhaustive()
    }
}
