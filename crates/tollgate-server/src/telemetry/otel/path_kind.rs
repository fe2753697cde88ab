//! Which requests get a span, by path.

use super::TracedDecisions;

/// The purpose of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathKind {
    /// `/api` and `/admin`: rare, and always worth a span.
    Management,
    /// A decision, on the hot path. The path is the route.
    Decision(&'static str),
    /// Probes, scrapes, pages and unknown paths.
    Other,
}

const DECISION_PATHS: [&str; 7] =
    ["/check", "/peek", "/refund", "/explain", "/check/batch", "/release", "/renew"];

impl PathKind {
    pub(super) fn of(path: &str) -> Self {
        if let Some(route) = DECISION_PATHS.into_iter().find(|route| *route == path) {
            return Self::Decision(route);
        }
        match path.starts_with("/api/") || path.starts_with("/admin/") {
            true => Self::Management,
            false => Self::Other,
        }
    }

    /// Returns whether the request gets a span even if the caller did not sample it.
    pub(super) fn is_traced(self, decisions: TracedDecisions) -> bool {
        match self {
            Self::Management => true,
            Self::Decision(_) => decisions == TracedDecisions::All,
            Self::Other => false,
        }
    }

    /// Returns the route if it is known without the router.
    pub(super) const fn route(self) -> Option<&'static str> {
        match self {
            Self::Decision(route) => Some(route),
            Self::Management | Self::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_have_a_span_only_if_all_are_traced() {
        for (path, by_default, if_all) in [
            ("/check", false, true),
            ("/check/batch", false, true),
            ("/renew", false, true),
            ("/api/status", true, true),
            ("/admin/external/clients/c/limits", true, true),
            ("/healthz", false, false),
            ("/metrics", false, false),
            ("/checks", false, false),
            ("/apis", false, false),
        ] {
            let kind = PathKind::of(path);
            assert_eq!(kind.is_traced(TracedDecisions::CallerSampled), by_default, "{path}");
            assert_eq!(kind.is_traced(TracedDecisions::All), if_all, "{path}");
        }
    }
}
