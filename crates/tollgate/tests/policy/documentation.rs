//! The examples in docs/POLICY.md, docs/IMPORT.md and docs/COMPARE.md are valid policies.

use crate::helpers::parse;

#[test]
fn documentation_examples_parse_without_warnings() {
    let texts = [
        include_str!("../../../../docs/POLICY.md"),
        include_str!("../../../../docs/IMPORT.md"),
        include_str!("../../../../docs/COMPARE.md"),
    ];
    let examples: Vec<_> = texts.iter().flat_map(|text| text.split("```yaml\n").skip(1)).collect();
    for example in &examples {
        let policy = parse(example.split("```").next().unwrap());
        assert_eq!(policy.warnings(), [""; 0], "{example}");
    }
    assert!(examples.len() >= 5);
}
