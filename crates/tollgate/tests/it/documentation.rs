//! Output in the documentation matches the examples.

#[path = "../../examples/quickstart.rs"]
#[expect(dead_code, reason = "the example's main function is not called")]
mod quickstart;

#[test]
fn documentation_shows_the_output_of_the_example() {
    let mut printed = Vec::new();
    quickstart::run(&mut printed).unwrap();
    let printed = String::from_utf8(printed).unwrap();
    let documentation = include_str!("../../../../docs/LIBRARY.md");
    assert!(documentation.contains(&printed), "docs/LIBRARY.md does not show:\n{printed}");
}
