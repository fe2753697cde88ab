//! Compares a generated text with the committed file, or writes it.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Returns the path of a file of the repository.
pub(super) fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

/// Reads a file of the repository.
pub(super) fn read(file: &str) -> String {
    fs::read_to_string(path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Asserts that a file has this text. With `UPDATE_SNAPSHOTS`, writes the text first.
pub(super) fn assert_current(file: &str, current: &str) {
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(path(file), current).unwrap();
    }
    let committed = fs::read_to_string(path(file)).unwrap_or_default();
    assert!(
        committed == current,
        "{file} is stale: {}; run scripts/references and commit the result",
        difference(&committed, current)
    );
}

/// Asserts that the section of a file between `<!-- NAME: … -->` and `<!-- end of NAME -->` has this text.
pub(super) fn assert_section_current(file: &str, name: &str, current: &str) {
    let text = read(file);
    let (start, end) = (format!("<!-- {name}: "), format!("<!-- end of {name} -->"));
    let missing = || panic!("{file}: the markers of the section {name} are missing");
    let (before, rest) = text.split_once(&start).unwrap_or_else(missing);
    let (comment, rest) = rest.split_once("-->\n").unwrap_or_else(missing);
    let (_, after) = rest.split_once(&end).unwrap_or_else(missing);
    assert_current(file, &format!("{before}{start}{comment}-->\n{current}{end}{after}"));
}

/// Describes the first line that differs.
fn difference(committed: &str, current: &str) -> String {
    let (mut old, mut new) = (committed.lines(), current.lines());
    for number in 1.. {
        match (old.next(), new.next()) {
            (Some(old), Some(new)) if old == new => {}
            (None, None) => break,
            (old, new) => {
                return format!("line {number} is {old:?}, the code defines {new:?}");
            }
        }
    }
    "only line ends differ".to_owned()
}

#[test]
fn difference_names_the_first_line() {
    let difference = difference("a\nb\n", "a\nc\n");
    assert_eq!(difference, r#"line 2 is Some("b"), the code defines Some("c")"#);
}
