//! What the documentation shows is taken as it stands.

use crate::helpers::parse;

#[test]
fn the_examples_of_the_reference_are_policies() {
    let text = include_str!("../../../../docs/POLICY.md");
    let examples: Vec<_> = text.split("```yaml\n").skip(1).collect();
    for example in &examples {
        let policy = parse(example.split("```").next().unwrap());
        assert_eq!(policy.warnings(), [""; 0], "{example}");
    }
    assert!(examples.len() >= 5);
}
