//! Which requests are worth a span.

use super::TracedDecisions;

/// What a path is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathKind {
    /// Operators and administrators: few, and what they do matters.
    Operating,
    /// A decision, on the hot path; its route is its path.
    Deciding(&'static str),
    /// Probes, scrapes, pages, and what is not served at all.
    Other,
}

const DECIDING: [&str; 7] =
    ["/check", "/peek", "/refund", "/explain", "/check/batch", "/release", "/renew"];

impl PathKind {
    pub(super) fn in_path(path: &str) -> Self {
        if let Some(route) = DECIDING.into_iter().find(|route| *route == path) {
            return Self::Deciding(route);
        }
        match path.starts_with("/api/") || path.starts_with("/admin/") {
            true => Self::Operating,
            false => Self::Other,
        }
    }

    /// Whether there is to be a span although no caller has said that it traces the request.
    pub(super) fn is_traced(self, decisions: TracedDecisions) -> bool {
        match self {
            Self::Operating => true,
            Self::Deciding(_) => decisions == TracedDecisions::All,
            Self::Other => false,
        }
    }

    /// Its route, where that needs no router.
    pub(super) const fn route(self) -> Option<&'static str> {
        match self {
            Self::Deciding(route) => Some(route),
            Self::Operating | Self::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_have_no_span_unless_all_have() {
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
            let kind = PathKind::in_path(path);
            assert_eq!(kind.is_traced(TracedDecisions::CallerSampled), by_default, "{path}");
            assert_eq!(kind.is_traced(TracedDecisions::All), if_all, "{path}");
        }
    }
}
