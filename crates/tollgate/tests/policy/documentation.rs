//! The examples in docs/POLICY.md are valid policies.

use crate::helpers::parse;

#[test]
fn documentation_examples_parse_without_warnings() {
    let text = include_str!("../../../../docs/POLICY.md");
    let examples: Vec<_> = text.split("```yaml\n").skip(1).collect();
    for example in &examples {
        let policy = parse(example.split("```").next().unwrap());
        assert_eq!(policy.warnings(), [""; 0], "{example}");
    }
    assert!(examples.len() >= 5);
}
