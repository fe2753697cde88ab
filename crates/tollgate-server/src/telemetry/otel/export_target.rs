//! Export settings from the `OTEL_*` environment variables. Errors contain no values, which may be secret.

use std::time::Duration;

use hyper::Uri;

use crate::{error::SettingsError, settings::Environment};

const DISABLED: &str = "OTEL_SDK_DISABLED";
const EXPORTER: &str = "OTEL_TRACES_EXPORTER";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const TIMEOUTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];
const PROTOCOLS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const SAMPLER_ARG: &str = "OTEL_TRACES_SAMPLER_ARG";

/// Default collector endpoint of the OpenTelemetry specification.
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";
const PATH: &str = "/v1/traces";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_TIMEOUT_MS: u64 = 600_000;

/// The collector that traces are exported to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExportTarget {
    pub(super) url: Uri,
    pub(super) timeout: Duration,
    /// `host:port` of the URL.
    address: String,
}

impl ExportTarget {
    /// Reads the environment; `None` if traces are not enabled.
    pub(super) fn from_environment(
        environment: &Environment,
    ) -> Result<Option<Self>, SettingsError> {
        let disabled = environment.get(DISABLED);
        if disabled.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let Some((setting, url)) = endpoint(environment)? else { return Ok(None) };
        check_protocol(environment)?;
        check_sampler(environment)?;
        let (url, address) = parse_url(setting, &url)?;
        Ok(Some(Self { url, address, timeout: timeout(environment)? }))
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }
}

/// Returns the endpoint URL and the variable that it comes from.
fn endpoint(environment: &Environment) -> Result<Option<(&'static str, String)>, SettingsError> {
    let with_path = |url: &str| format!("{}{PATH}", url.trim_end_matches('/'));
    let for_traces = environment.get(TRACES_ENDPOINT).map(|url| (TRACES_ENDPOINT, url.to_owned()));
    let for_all = || environment.get(ENDPOINT).map(|url| (ENDPOINT, with_path(url)));
    let configured = for_traces.or_else(for_all);
    let Some(exporters) = environment.get(EXPORTER) else { return Ok(configured) };
    let mut exporters = exporters.split(',').map(|name| name.trim().to_ascii_lowercase());
    if exporters.clone().any(|name| name == "otlp") {
        return Ok(Some(configured.unwrap_or_else(|| (ENDPOINT, with_path(DEFAULT_ENDPOINT)))));
    }
    if exporters.all(|name| name == "none") {
        return Ok(None);
    }
    Err(SettingsError::new(EXPORTER, "unknown exporter; use otlp or none"))
}

fn check_protocol(environment: &Environment) -> Result<(), SettingsError> {
    let configured = PROTOCOLS.into_iter().find_map(|name| Some((name, environment.get(name)?)));
    match configured {
        Some((name, protocol)) if !protocol.eq_ignore_ascii_case("http/protobuf") => {
            Err(SettingsError::new(name, "unsupported protocol; use http/protobuf"))
        }
        _ => Ok(()),
    }
}

/// Rejects unknown samplers. The library would silently sample everything.
fn check_sampler(environment: &Environment) -> Result<(), SettingsError> {
    match environment.get(SAMPLER) {
        None
        | Some("always_on" | "always_off" | "parentbased_always_on" | "parentbased_always_off") => {
            Ok(())
        }
        Some("traceidratio" | "parentbased_traceidratio") => {
            let Some(ratio) = environment.get(SAMPLER_ARG) else { return Ok(()) };
            match ratio.parse::<f64>() {
                Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(()),
                _ => Err(SettingsError::new(SAMPLER_ARG, "must be a number from 0 to 1")),
            }
        }
        Some(_) => {
            let reason = "unknown sampler; use always_on, always_off, traceidratio or their parentbased_ forms";
            Err(SettingsError::new(SAMPLER, reason))
        }
    }
}

/// Returns the URL and its `host:port`.
fn parse_url(setting: &str, url: &str) -> Result<(Uri, String), SettingsError> {
    let invalid = |reason: &str| SettingsError::new(setting, reason);
    let uri: Uri = url.trim().parse().map_err(|_| invalid("is not a URL"))?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => {
            return Err(invalid("https is not supported; export over http to a local collector"));
        }
        _ => return Err(invalid("must start with http://")),
    }
    let authority = uri.authority().ok_or_else(|| invalid("has no host"))?;
    if authority.as_str().contains('@') {
        return Err(invalid(
            "must not contain a user; put credentials in OTEL_EXPORTER_OTLP_HEADERS",
        ));
    }
    let is_bare = authority.as_str() == authority.host();
    let address = match (authority.port_u16(), is_bare) {
        (Some(port), _) => format!("{}:{port}", authority.host()),
        (None, true) => format!("{}:80", authority.host()),
        (None, false) => return Err(invalid("has an invalid port")),
    };
    Ok((uri, address))
}

fn timeout(environment: &Environment) -> Result<Duration, SettingsError> {
    let configured = TIMEOUTS.into_iter().find_map(|name| Some((name, environment.get(name)?)));
    let Some((name, text)) = configured else { return Ok(DEFAULT_TIMEOUT) };
    match text.trim().parse() {
        Ok(millis @ 1..=MAX_TIMEOUT_MS) => Ok(Duration::from_millis(millis)),
        _ => {
            let reason = format!("must be from 1 to {MAX_TIMEOUT_MS} milliseconds");
            Err(SettingsError::new(name, reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target<const N: usize>(
        pairs: [(&str, &str); N],
    ) -> Result<Option<ExportTarget>, SettingsError> {
        ExportTarget::from_environment(&Environment::from(pairs))
    }

    fn url_of<const N: usize>(pairs: [(&str, &str); N]) -> Option<String> {
        target(pairs).unwrap().map(|target| target.url.to_string())
    }

    #[test]
    fn exports_nothing_unless_enabled() {
        assert_eq!(url_of([]), None);
        assert_eq!(url_of([("OTEL_SERVICE_NAME", "t"), (ENDPOINT, "")]), None);
        assert_eq!(url_of([(EXPORTER, "none"), (ENDPOINT, "http://c:1")]), None);
        assert_eq!(url_of([(DISABLED, "TRUE"), (ENDPOINT, "http://c:1")]), None);
        assert_eq!(url_of([(DISABLED, "true"), (ENDPOINT, "nonsense")]), None);
        let url = url_of([(DISABLED, "1"), (ENDPOINT, "http://c:1")]);
        assert!(url.is_some(), "the specification accepts only true");
    }

    #[test]
    fn appends_the_path_to_the_shared_endpoint_only() {
        let default = Some("http://localhost:4318/v1/traces".to_owned());
        assert_eq!(url_of([(EXPORTER, "otlp")]), default);
        assert_eq!(url_of([(ENDPOINT, "http://localhost:4318/")]), default);
        assert_eq!(url_of([(ENDPOINT, "http://c/a")]).as_deref(), Some("http://c/a/v1/traces"));
        let both = [(ENDPOINT, "http://c:1"), (TRACES_ENDPOINT, "http://[::1]:2/x")];
        assert_eq!(url_of(both).as_deref(), Some("http://[::1]:2/x"));
    }

    #[test]
    fn errors_name_the_variable_without_its_value() {
        for (name, value) in [
            (ENDPOINT, "https://canary:4318"),
            (ENDPOINT, "http://user:canary@c:1"),
            (ENDPOINT, "http://canary:99999"),
            (ENDPOINT, "canary"),
            (ENDPOINT, "http://can ary"),
            (TRACES_ENDPOINT, "grpc://canary"),
            (EXPORTER, "canary"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "canary"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "canary"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "0"),
            (SAMPLER, "canary"),
            (SAMPLER_ARG, "canary"),
            (SAMPLER_ARG, "1.5"),
            (SAMPLER_ARG, "NaN"),
        ] {
            let pairs = [(ENDPOINT, "http://c:1"), (SAMPLER, "traceidratio"), (name, value)];
            let error = target(pairs).unwrap_err().to_string();
            let is_named = error.starts_with(name);
            assert!(is_named && !error.contains("canary"), "{name}={value}: {error}");
        }
    }

    #[test]
    fn timeout_is_in_milliseconds() {
        let of = |pairs: [(&str, &str); 2]| target(pairs).unwrap().unwrap();
        let set = of([(ENDPOINT, "http://c:1"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "250")]);
        assert_eq!(set.timeout, Duration::from_millis(250));
        let empty = of([(ENDPOINT, "http://c:1"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "")]);
        assert_eq!((empty.timeout, empty.address()), (DEFAULT_TIMEOUT, "c:1"));
    }
}
