//! What the documentation shows is what is printed.

#[path = "../../examples/quickstart.rs"]
#[expect(dead_code, reason = "an example has a main function of its own")]
mod quickstart;

#[test]
fn the_documentation_shows_what_the_example_prints() {
    let mut printed = Vec::new();
    quickstart::run(&mut printed).unwrap();
    let printed = String::from_utf8(printed).unwrap();
    let shown = include_str!("../../../../docs/LIBRARY.md");
    assert!(shown.contains(&printed), "docs/LIBRARY.md does not show:\n{printed}");
}
