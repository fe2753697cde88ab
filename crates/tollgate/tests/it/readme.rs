//! What the README shows is what is printed.

#[path = "../../examples/quickstart.rs"]
#[expect(dead_code, reason = "an example has a main function of its own")]
mod quickstart;

#[test]
fn the_readme_shows_what_the_example_prints() {
    let mut printed = Vec::new();
    quickstart::run(&mut printed).unwrap();
    let printed = String::from_utf8(printed).unwrap();
    let readme = include_str!("../../../../README.md");
    assert!(readme.contains(&printed), "the README does not show:\n{printed}");
}
