//! Whose spans these are.

use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;

use super::attributes;
use crate::settings::Environment;

/// This node, as `OTEL_RESOURCE_ATTRIBUTES` says and, before it, `OTEL_SERVICE_NAME`.
pub(super) fn of(environment: &Environment, node_id: &str) -> Resource {
    let said = environment.get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let says = |name: &str| {
        let mut names = said.split(',').filter_map(|pair| Some(pair.split_once('=')?.0.trim()));
        names.any(|known| known == name)
    };
    let ours = [
        (attributes::SERVICE, "tollgate"),
        (attributes::VERSION, env!("CARGO_PKG_VERSION")),
        (attributes::INSTANCE, node_id),
    ];
    let unsaid = ours.into_iter().filter(|(name, _)| !says(name));
    // The library lets the list win over the name that is meant to win.
    let named = environment.get("OTEL_SERVICE_NAME").map(|name| (attributes::SERVICE, name));
    let pairs = unsaid.chain(named).map(|(name, value)| KeyValue::new(name, value.to_owned()));
    Resource::builder().with_attributes(pairs).build()
}

#[cfg(test)]
mod tests {
    use opentelemetry::Key;

    use super::*;

    #[test]
    fn the_name_is_ours_unless_someone_says_another() {
        let list = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=listed, team=edge");
        let name = ("OTEL_SERVICE_NAME", "named");
        let told = |environment: &Environment| {
            of(environment, "n1").get(&Key::new(attributes::SERVICE)).map(|value| value.to_string())
        };
        assert_eq!(told(&Environment::default()).as_deref(), Some("tollgate"));
        assert_eq!(told(&Environment::from([name])).as_deref(), Some("named"));
        assert_eq!(told(&Environment::from([name, list])).as_deref(), Some("named"));
        assert_ne!(told(&Environment::from([list])).as_deref(), Some("tollgate"));
    }
}
