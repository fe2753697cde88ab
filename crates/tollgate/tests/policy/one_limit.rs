//! `limits` with one limit instead of a list.

use tollgate::{Limit, Policy};

fn limits(text: &str) -> Vec<Limit> {
    let text = format!("version: 1\nrules:\n  - name: api\n    {text}\n");
    let policy = Policy::from_yaml("p.yaml", &text, Limit::block()).unwrap();
    policy.rules()[0].limits().to_vec()
}

#[test]
fn one_limit_needs_no_list() {
    assert_eq!(limits("limits: 10/min"), limits("limits: [10/min]"));
    assert_eq!(
        limits("limits: { rate: 10/min, name: m }"),
        limits("limits: [{ rate: 10/min, name: m }]")
    );
    assert_eq!(limits("limits: 0"), limits("limits: [0]"));
    let text = "version: 1\nlimiters: { mail: { limits: 10/min } }\nrules:\n- { name: a, limits: 1/s, next: { limits: 2/s } }\n";
    assert!(Policy::from_yaml("p.yaml", text, Limit::block()).is_ok());
}
