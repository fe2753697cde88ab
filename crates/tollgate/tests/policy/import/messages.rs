//! Messages about configurations that cannot be imported, and warnings.

use tollgate::policy::{self, ImportFormat};

use super::import;

/// Asserts the message for a configuration in the file `c.yaml`.
fn assert_refused(format: ImportFormat, config: &str, message: &str) {
    match policy::import(format, &[("c.yaml", config)]) {
        Ok(imported) => panic!("imported, expected {message}\n{config}\n{}", imported.yaml),
        Err(error) => assert_eq!(error.to_string(), message, "{config}"),
    }
}

/// A configuration with these fields of the only descriptor, at line 4, and of its limit, at line 5.
fn envoy(descriptor: &str, limit: &str) -> String {
    format!(
        "domain: d\ndescriptors:\n  - key: a\n    {descriptor}\n    rate_limit: {{ {limit} }}\n"
    )
}

const PER_MINUTE: &str = "unit: minute, requests_per_unit: 5";

#[test]
fn envoy_configurations_are_refused_with_the_reason() {
    let two = |second: &str| {
        format!("domain: d\ndescriptors:\n  - {{ key: a, value: x }}\n  - {{ {second} }}\n")
    };
    for (config, message) in [
        (String::new(), "c.yaml:1:1: the file is empty"),
        ("- a\n".into(), "c.yaml:1:1: expected a map of fields, found a list"),
        ("descriptors: []\n".into(), "c.yaml:1:1: domain: required field is missing"),
        ("domain: ''\n".into(), "c.yaml:1:9: domain: must not be empty"),
        (
            "domain: d\nlimits: []\n".into(),
            "c.yaml:2:1: limits: unknown field (valid: domain, descriptors)",
        ),
        ("domain: d\n1: x\n".into(), "c.yaml:2:1: 1: unknown field (valid: domain, descriptors)"),
        (
            "domain: d\n? [a]\n: x\n".into(),
            "c.yaml:2:3: a field name must be a string, not a list or a map",
        ),
        (
            "domain: d\ndescriptors: [a]\n".into(),
            "c.yaml:2:15: descriptors[0]: expected a map of fields, found a single value",
        ),
        (
            "domain: d\ndescriptors:\n  - value: x\n".into(),
            "c.yaml:3:5: descriptors[0].key: required field is missing",
        ),
        (
            "domain: d\ndescriptors:\n  - key: ''\n".into(),
            "c.yaml:3:10: descriptors[0].key: must not be empty",
        ),
        (
            "domain: d\ndescriptors:\n  - key: a*\n".into(),
            "c.yaml:3:10: descriptors[0].key: a wildcard in a key cannot be imported; only values \
             can contain *",
        ),
        (
            envoy("shadow: true", PER_MINUTE),
            "c.yaml:4:5: descriptors[0].shadow: unknown field (valid: key, value, rate_limit, \
             descriptors, shadow_mode, share_threshold, detailed_metric, value_to_metric, \
             quota_mode, metadata)",
        ),
        (
            envoy("shadow_mode: maybe", PER_MINUTE),
            "c.yaml:4:18: descriptors[0].shadow_mode: must be true or false, not \"maybe\"",
        ),
        (
            envoy("value: x", "unit: fortnight, requests_per_unit: 5"),
            "c.yaml:5:25: descriptors[0].rate_limit.unit: unknown unit \"fortnight\" (valid: \
             second, minute, hour, day, week, month, year)",
        ),
        (
            envoy("value: x", "requests_per_unit: 5"),
            "c.yaml:5:17: descriptors[0].rate_limit.unit: required field is missing",
        ),
        (
            envoy("value: x", "unit: minute"),
            "c.yaml:5:17: descriptors[0].rate_limit.requests_per_unit: required field is missing",
        ),
        (
            envoy("value: x", "unit: minute, requests_per_unit: -1"),
            "c.yaml:5:52: descriptors[0].rate_limit.requests_per_unit: must be a whole number from \
             0 to 2^53 - 1, not \"-1\"",
        ),
        (
            envoy("value: x", "unit: minute, requests_per_unit: 4294967296"),
            "c.yaml:5:52: descriptors[0].rate_limit.requests_per_unit: must be at most 4294967295",
        ),
        (
            envoy("value: x", "unlimited: true, unit: minute"),
            "c.yaml:5:36: descriptors[0].rate_limit.unit: is not valid with unlimited: true",
        ),
        (
            envoy("value: x", "unit: minute, requests_per_unit: 5, replaces: [{ name: b }]"),
            "c.yaml:5:55: descriptors[0].rate_limit.replaces: cannot be expressed in a policy: a \
             rule cannot cancel the limit of another descriptor",
        ),
        (
            envoy("share_threshold: true", PER_MINUTE),
            "c.yaml:4:22: descriptors[0].share_threshold: is only valid with a value that contains \
             *",
        ),
        (
            envoy("quota_mode: true", PER_MINUTE),
            "c.yaml:4:17: descriptors[0].quota_mode: cannot be expressed in a policy; remove it",
        ),
        (
            envoy("metadata: { owner: me }", PER_MINUTE),
            "c.yaml:4:5: descriptors[0].metadata: cannot be expressed in a policy; remove it",
        ),
        (
            two("key: a, value: x"),
            "c.yaml:4:5: descriptors[1]: duplicate key and value; line 3 has the same",
        ),
        (
            two("key: a_x"),
            "c.yaml:4:5: descriptors[1]: envoyproxy/ratelimit cannot distinguish this key and value \
             from those on line 3",
        ),
        (
            "domain: d\ndescriptors: &all\n  - key: a\n".into(),
            "c.yaml:3:3: descriptors: YAML anchors are not supported; remove the anchor and repeat \
             the value",
        ),
    ] {
        assert_refused(ImportFormat::Envoy, &config, message);
    }
}

#[test]
fn envoy_descriptors_beyond_the_bounds_are_refused() {
    let long = envoy(&format!("value: {}", "v".repeat(1023)), PER_MINUTE);
    assert_refused(
        ImportFormat::Envoy,
        &long,
        "c.yaml:3:5: descriptors[0]: the keys and values down to this descriptor are longer than \
         1024 bytes as a pattern",
    );
    let shared = "domain: d
descriptors:
  - key: a
    descriptors:
      - key: a
        value: x*
        share_threshold: true
        descriptors:
          - key: a
            rate_limit: { unit: day, requests_per_unit: 1 }
";
    assert_refused(
        ImportFormat::Envoy,
        shared,
        "c.yaml:9:13: descriptors[0].descriptors[0].descriptors[0]: cannot be imported beside \
         share_threshold, because no fact holds this entry: its key is longer than 58 bytes or \
         occurs twice",
    );
    let deep = "[".repeat(200);
    let error = policy::import(ImportFormat::Envoy, &[("c.yaml", &deep)]).unwrap_err();
    assert_eq!(error.to_string(), "c.yaml:1:131: nested deeper than the maximum of 130 levels");
}

#[test]
fn all_errors_of_a_file_are_reported() {
    let config = "domain: d\ndescriptors:\n  - key: ''\n  - keys: b\n";
    assert_refused(
        ImportFormat::Envoy,
        config,
        "c.yaml:3:10: descriptors[0].key: must not be empty\n\
         c.yaml:4:5: descriptors[1].keys: unknown field, did you mean \"key\"?",
    );
}

/// A limit with these further fields, from line 4.
fn limitador(fields: &str) -> String {
    format!("- namespace: n\n  max_value: 5\n  seconds: 60\n{fields}")
}

#[test]
fn limitador_limits_are_refused_with_the_reason() {
    let comparison = "only comparisons of one entry can be imported, such as descriptors[0]['KEY'] \
                      == 'VALUE' or descriptors[0].KEY != 'VALUE'";
    let condition = |text: &str| limitador(&format!("  conditions: [\"{text}\"]\n"));
    for (config, message) in [
        ("namespace: n\n".to_owned(), "c.yaml:1:1: expected a list, found a map of fields".into()),
        ("- max_value: 1\n".into(), "c.yaml:1:3: [0].namespace: required field is missing".into()),
        (
            "- namespace: n\n  seconds: 1\n".into(),
            "c.yaml:1:3: [0].max_value: required field is missing".into(),
        ),
        (
            "- namespace: n\n  max_value: 1\n".into(),
            "c.yaml:1:3: [0].seconds: required field is missing".into(),
        ),
        (
            "- namespace: n\n  max_value: 1\n  seconds: 0\n".into(),
            "c.yaml:3:12: [0].seconds: must be a whole number from 1 to 2^53 - 1, not \"0\"".into(),
        ),
        (
            "- namespace: n\n  max_value: 1\n  seconds: 3155760001\n".into(),
            "c.yaml:3:12: [0].seconds: must be at most 100 years (3155760000 seconds)".into(),
        ),
        (
            limitador("  policy: x\n"),
            "c.yaml:4:3: [0].policy: unknown field (valid: namespace, max_value, seconds, \
             conditions, variables, name, id)"
                .into(),
        ),
        (condition("a == b"), format!("c.yaml:4:16: [0].conditions[0]: {comparison}")),
        (condition("a == 'b' || c == 'd'"), format!("c.yaml:4:16: [0].conditions[0]: {comparison}")),
        (
            condition("descriptors[1].a == 'b'"),
            "c.yaml:4:16: [0].conditions[0]: only descriptors[0] can be imported: other \
             descriptors of a request are decided separately"
                .into(),
        ),
        (
            condition("a == ''"),
            "c.yaml:4:16: [0].conditions[0]: a comparison with the empty text cannot be expressed in \
             a policy"
                .into(),
        ),
        (
            limitador("  variables: ['descriptors[1].user']\n"),
            "c.yaml:4:15: [0].variables[0]: only descriptors[0] can be imported: other descriptors \
             of a request are decided separately"
                .into(),
        ),
        (
            limitador("  variables: [\"a + b\"]\n"),
            "c.yaml:4:15: [0].variables[0]: only single entries can be imported, such as \
             descriptors[0]['KEY'], descriptors[0].KEY or KEY"
                .into(),
        ),
        (
            limitador(&limitador("")),
            "c.yaml:4:3: [1]: duplicate limit; that on line 1 has the same namespace, seconds, \
             conditions and variables"
                .into(),
        ),
    ] {
        assert_refused(ImportFormat::Limitador, &config, &message);
    }
}

#[test]
fn more_limits_than_a_request_can_take_are_refused() {
    let limits = |condition: fn(u64) -> String| -> String {
        let limit = |n| {
            format!(
                "- {{ namespace: n, max_value: 5, seconds: {}, conditions: [\"{}\"] }}\n",
                n + 1,
                condition(n)
            )
        };
        (0..17).map(limit).collect()
    };
    let together = limits(|_| "a == 'b'".to_owned());
    assert_refused(
        ImportFormat::Limitador,
        &together,
        "c.yaml:1:16: up to 17 limits of this namespace can apply to one request; a policy supports \
         16",
    );
    let apart = limits(|n| format!("a == '{}'", n % 2));
    let imported = import(ImportFormat::Limitador, &[("c.yaml", &apart)]);
    assert_eq!(crate::helpers::parse(&imported.yaml).warnings(), [""; 0]);
}

#[test]
fn one_domain_in_two_files_is_refused() {
    let envoy = "domain: d\n";
    let error = policy::import(ImportFormat::Envoy, &[("a.yaml", envoy), ("b.yaml", envoy)]);
    let message = "b.yaml:1:9: domain: duplicate domain; a.yaml has the same";
    assert_eq!(error.unwrap_err().to_string(), message);
    let limits = &limitador("");
    let error = policy::import(ImportFormat::Limitador, &[("a.yaml", limits), ("b.yaml", limits)]);
    let message = "b.yaml:1:14: [0].namespace: duplicate namespace; a.yaml has the same";
    assert_eq!(error.unwrap_err().to_string(), message);
}

#[test]
fn settings_without_effect_on_decisions_are_ignored_with_a_warning() {
    let config = envoy("detailed_metric: true", "name: 'a b', unit: minute, requests_per_unit: 5");
    let imported = import(ImportFormat::Envoy, &[("c.yaml", &config)]);
    assert_eq!(
        imported.warnings,
        [
            "c.yaml:4: warning: detailed_metric: ignored; it changes only metrics",
            "c.yaml:5: warning: name: ignored; it is not a valid name of a limit",
        ]
    );
    let config = limitador("  conditions: [\"a == 'x'\", \"a == 'y'\"]\n");
    let imported = import(ImportFormat::Limitador, &[("c.yaml", &config)]);
    assert_eq!(
        imported.warnings,
        ["c.yaml:1: warning: namespace: this limit is left out; its conditions exclude each other"]
    );
    assert!(imported.yaml.ends_with("rules: []\n"));
}
