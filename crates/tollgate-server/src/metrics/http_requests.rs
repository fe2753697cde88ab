//! Requests of the HTTP API by route and status, and their durations.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::histogram::Histogram;
use super::read;
use super::text::Exposition;

/// The routes with their own series, the most frequent ones first, because they are found by comparison. All other paths,
/// which clients choose freely, are counted as the last one.
const ROUTES: [&str; 41] = [
    "/check",
    "/auth",
    "/auth/nginx",
    "/peek",
    "/refund",
    "/check/batch",
    "/reserve",
    "/settle",
    "/release",
    "/renew",
    "/explain",
    "/healthz",
    "/readyz",
    "/metrics",
    "/api/live",
    "/api/nodes",
    "/api/counters",
    "/api/limits",
    "/api/blocks",
    "/api/clients/{id}",
    "/api/events",
    "/api/history",
    "/api/status",
    "/api/explain",
    "/api/session",
    "/api/login",
    "/api/logout",
    "/admin/external/clients/{id}/limits",
    "/admin/external/clients/{id}/stats",
    "/admin/external/clients/{id}/reset",
    "/admin/overrides",
    "/admin/audit",
    "/admin/policy/reload",
    "/",
    "/dashboard/{file}",
    "/openapi.json",
    "/docs",
    "/docs/page.js",
    "/docs/page.css",
    "/docs/icon.svg",
    OTHER,
];

/// The route of unknown paths, and the status of unusual ones.
const OTHER: &str = "other";

/// The statuses with their own series, and their labels. All others are counted as `other`.
const STATUSES: [(u16, &str); 16] = [
    (200, "200"),
    (429, "429"),
    (204, "204"),
    (304, "304"),
    (400, "400"),
    (401, "401"),
    (403, "403"),
    (404, "404"),
    (405, "405"),
    (408, "408"),
    (409, "409"),
    (413, "413"),
    (415, "415"),
    (422, "422"),
    (500, "500"),
    (503, "503"),
];

/// Upper bucket bounds: nanoseconds, and the `le` label in seconds.
const BOUNDS: [(u64, &str); 7] = [
    (100_000, "0.0001"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (5_000_000, "0.005"),
    (25_000_000, "0.025"),
    (100_000_000, "0.1"),
    (1_000_000_000, "1"),
];

/// The counters of all routes. Their number is fixed, so counting a request needs no lock and no allocation.
#[derive(Debug)]
pub(crate) struct HttpRequests([RouteCounters; ROUTES.len()]);

#[derive(Debug)]
struct RouteCounters {
    by_status: [AtomicU64; STATUSES.len()],
    other_status: AtomicU64,
    duration: Histogram<{ BOUNDS.len() }>,
}

impl Default for HttpRequests {
    fn default() -> Self {
        Self([const { RouteCounters::new() }; ROUTES.len()])
    }
}

impl RouteCounters {
    const fn new() -> Self {
        Self {
            by_status: [const { AtomicU64::new(0) }; STATUSES.len()],
            other_status: AtomicU64::new(0),
            duration: Histogram::new(&BOUNDS),
        }
    }

    /// Returns the number of requests with each status that occurred.
    fn statuses(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let labels = STATUSES.iter().map(|(_, label)| *label).chain([OTHER]);
        let counts = self.by_status.iter().chain([&self.other_status]).map(read);
        labels.zip(counts).filter(|(_, count)| *count > 0)
    }
}

impl HttpRequests {
    /// Counts a request of a route, with the status of its response and the time until it.
    pub(crate) fn count(&self, route: &str, status: u16, took: Duration) {
        let index = ROUTES.iter().position(|known| *known == route);
        let Some(counters) = index.and_then(|index| self.0.get(index)).or(self.0.last()) else {
            return;
        };
        let index = STATUSES.iter().position(|(known, _)| *known == status);
        let count = index.and_then(|index| counters.by_status.get(index));
        count.unwrap_or(&counters.other_status).fetch_add(1, Ordering::Relaxed);
        counters.duration.record(took);
    }

    /// Appends the metrics of the routes that were requested.
    pub(super) fn render(&self, out: &mut Exposition) {
        let help = "HTTP requests by route and status of the response, with any result.";
        let mut metric = out.counter("tollgate_http_requests_total", help);
        for (route, counters) in ROUTES.iter().zip(&self.0) {
            for (status, count) in counters.statuses() {
                metric.sample(&[("route", route), ("status", status)], count);
            }
        }
        let name = "tollgate_http_request_duration_seconds";
        let help = "Time from a request to the head of its response in seconds, by route.";
        out.histogram(name, help);
        for (route, counters) in ROUTES.iter().zip(&self.0) {
            if counters.statuses().next().is_some() {
                out.series(name, Some(("route", route)), &counters.duration);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(requests: &HttpRequests) -> String {
        let mut out = Exposition::default();
        requests.render(&mut out);
        out.into_text()
    }

    #[test]
    fn requests_are_counted_by_route_and_status() {
        let requests = HttpRequests::default();
        requests.count("/check", 200, Duration::from_micros(50));
        requests.count("/check", 200, Duration::from_millis(2));
        requests.count("/check", 418, Duration::from_secs(5));
        requests.count("/client-1234", 404, Duration::ZERO);
        let text = text(&requests);
        for line in [
            "tollgate_http_requests_total{route=\"/check\",status=\"200\"} 2",
            "tollgate_http_requests_total{route=\"/check\",status=\"other\"} 1",
            "tollgate_http_requests_total{route=\"other\",status=\"404\"} 1",
            "tollgate_http_request_duration_seconds_bucket{route=\"/check\",le=\"0.0001\"} 1",
            "tollgate_http_request_duration_seconds_bucket{route=\"/check\",le=\"0.005\"} 2",
            "tollgate_http_request_duration_seconds_bucket{route=\"/check\",le=\"+Inf\"} 3",
            "tollgate_http_request_duration_seconds_sum{route=\"/check\"} 5.002050000",
            "tollgate_http_request_duration_seconds_count{route=\"/check\"} 3",
        ] {
            assert!(text.lines().any(|printed| printed == line), "{line} is missing:\n{text}");
        }
        assert!(!text.contains("client-1234"), "{text}");
    }

    #[test]
    fn every_path_of_the_api_has_its_own_series() {
        let api: serde_json::Value =
            serde_json::from_str(include_str!("../../assets/openapi.json")).unwrap();
        for path in api["paths"].as_object().unwrap().keys() {
            assert!(ROUTES.contains(&path.as_str()), "add {path} to ROUTES");
        }
    }

    #[test]
    fn routes_without_requests_have_no_series() {
        let text = text(&HttpRequests::default());
        assert!(text.lines().all(|line| line.starts_with('#')), "{text}");
    }
}
