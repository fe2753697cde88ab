//! The page that shows the table of the last full run, between two markers.

use std::process::Command;
use std::{fs, io, path::Path, thread};

const BEGIN: &str = "<!-- results:begin -->\n";
const END: &str = "<!-- results:end -->";

/// Writes the results of a full run, and when, where and with which commit they were measured.
///
/// # Errors
/// The page cannot be read or written, or has no markers.
pub fn write(page: &Path, table: &str, summary: &str) -> io::Result<()> {
    let text = fs::read_to_string(page)?;
    let commit = output("git", &["describe", "--always", "--dirty", "--exclude=*"])?;
    let date = output("date", &["--utc", "+%Y-%m-%d"])?;
    let cores = thread::available_parallelism()?;
    let results = format!("{date}, commit {commit}, {cores} cores: {summary}\n\n{table}\n");
    let replaced = replace(&text, &results).ok_or_else(|| {
        let page = page.display();
        io::Error::other(format!("{page} has no lines {} and {END}", BEGIN.trim_end()))
    })?;
    fs::write(page, replaced)
}

/// Replaces the text between the markers. `None` without markers.
fn replace(text: &str, results: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{results}{END}{after}"))
}

fn output(program: &str, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(program).args(arguments).output()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let is_complete = output.status.success() && !text.is_empty();
    is_complete.then_some(text).ok_or_else(|| io::Error::other(format!("{program} failed")))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{replace, write};
    use crate::scratch::Scratch;

    #[test]
    fn results_have_a_date_and_a_commit() {
        let scratch = Scratch::new();
        let page = scratch.write("page.md", "<!-- results:begin -->\n<!-- results:end -->\n");
        write(&page, "| 1 | yes |", "1 of 1 rows pass.").expect("the page has markers");
        let text = fs::read_to_string(page).expect("the page exists");
        assert!(text.contains("-") && text.contains(", commit "), "{text}");
        assert!(
            text.ends_with(" cores: 1 of 1 rows pass.\n\n| 1 | yes |\n<!-- results:end -->\n"),
            "{text}"
        );
    }

    #[test]
    fn only_the_text_between_the_markers_changes() {
        let page = "a\n<!-- results:begin -->\nold\n<!-- results:end -->\nb\n";
        let expected = "a\n<!-- results:begin -->\nnew\n<!-- results:end -->\nb\n";
        assert_eq!(replace(page, "new\n").as_deref(), Some(expected));
        assert_eq!(replace("no markers", "new\n"), None);
    }
}
