//! Span attribute names. Names without the `tollgate.` prefix are OpenTelemetry semantic conventions.

pub(super) const METHOD: &str = "http.request.method";
pub(super) const ROUTE: &str = "http.route";
pub(super) const STATUS: &str = "http.response.status_code";
pub(super) const ERROR: &str = "error.type";
pub(super) const CLIENT: &str = "client.address";
pub(super) const SERVICE: &str = "service.name";
pub(super) const VERSION: &str = "service.version";
pub(super) const INSTANCE: &str = "service.instance.id";
pub(super) const RULE: &str = "tollgate.rule";
pub(super) const VERDICT: &str = "tollgate.verdict";
