//! OpenTelemetry resource attributes of this node.

use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;

use super::attributes;
use crate::settings::Environment;

/// Builds the resource. `OTEL_SERVICE_NAME` takes precedence over `OTEL_RESOURCE_ATTRIBUTES`, and both over the
/// defaults.
pub(super) fn build(environment: &Environment, node_id: &str) -> Resource {
    let list = environment.get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let is_listed = |name: &str| {
        let mut names = list.split(',').filter_map(|pair| Some(pair.split_once('=')?.0.trim()));
        names.any(|listed| listed == name)
    };
    let defaults = [
        (attributes::SERVICE, "tollgate"),
        (attributes::VERSION, env!("CARGO_PKG_VERSION")),
        (attributes::INSTANCE, node_id),
    ];
    let defaults = defaults.into_iter().filter(|(name, _)| !is_listed(name));
    // Set explicitly: the library lets the list win over OTEL_SERVICE_NAME, against the specification.
    let named = environment.get("OTEL_SERVICE_NAME").map(|name| (attributes::SERVICE, name));
    let pairs = defaults.chain(named).map(|(name, value)| KeyValue::new(name, value.to_owned()));
    Resource::builder().with_attributes(pairs).build()
}

#[cfg(test)]
mod tests {
    use opentelemetry::Key;

    use super::*;

    #[test]
    fn service_name_comes_from_the_environment_if_set() {
        let list = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=listed, team=edge");
        let name = ("OTEL_SERVICE_NAME", "named");
        let service_name = |environment: &Environment| {
            let resource = build(environment, "n1");
            resource.get(&Key::new(attributes::SERVICE)).map(|value| value.to_string())
        };
        assert_eq!(service_name(&Environment::default()).as_deref(), Some("tollgate"));
        assert_eq!(service_name(&Environment::from([name])).as_deref(), Some("named"));
        assert_eq!(service_name(&Environment::from([name, list])).as_deref(), Some("named"));
        assert_ne!(service_name(&Environment::from([list])).as_deref(), Some("tollgate"));
    }
}
