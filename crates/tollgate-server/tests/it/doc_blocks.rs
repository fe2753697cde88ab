//! The command blocks of README.md and docs/*.md, and how each of them is tested.

use std::fs;
use std::path::{Path, PathBuf};

/// How a block is tested.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Tested {
    /// Not marked: this crate's tests run it.
    Here,
    /// `<!-- run by FILE -->`: another test runs it.
    By(String),
    /// `<!-- not run: REASON -->`.
    Not(String),
}

/// A block of commands.
#[derive(Debug)]
pub(crate) struct Block {
    /// Page and line, for messages.
    pub(crate) place: String,
    pub(crate) tested: Tested,
    /// Whether commands start with `$ ` and are followed by their output.
    pub(crate) is_console: bool,
    pub(crate) text: String,
}

impl Block {
    /// Returns the commands, each with its output; empty if the page does not show it.
    pub(crate) fn commands(&self) -> Vec<(String, String)> {
        if !self.is_console {
            return vec![(self.text.clone(), String::new())];
        }
        let mut commands: Vec<(String, String)> = Vec::new();
        for line in self.text.lines() {
            match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => commands.push((command.to_owned(), String::new())),
                (None, Some((_, output))) => *output += &format!("{line}\n"),
                (None, None) => panic!("{}: output before the first command", self.place),
            }
        }
        commands
    }
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the command blocks of all pages.
pub(crate) fn blocks() -> Vec<Block> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    pages.sort();
    pages.insert(0, root().join("README.md"));
    pages.iter().flat_map(|page| blocks_of(page)).collect()
}

fn blocks_of(page: &Path) -> Vec<Block> {
    let text = fs::read_to_string(page).unwrap();
    let name = page.file_name().unwrap().to_str().unwrap();
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    let mut previous = "";
    while let Some((number, line)) = lines.next() {
        let place = format!("{name}:{}", number + 1);
        if let Some(language) = line.strip_prefix("```") {
            let block = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
            let text: String = block.map(|line| format!("{line}\n")).collect();
            assert!(!["bash", "shell", "zsh"].contains(&language), "{place}: use sh or console");
            // CLI.md has the synopsis of each command.
            let is_command = text.starts_with("tollgate ") || text.starts_with("$ ");
            let is_hidden = language == "text" && is_command && name != "CLI.md";
            assert!(!is_hidden, "{place}: use sh or console");
            if ["sh", "console"].contains(&language) {
                let (tested, is_console) = (tested(&place, previous), language == "console");
                found.push(Block { place, tested, is_console, text });
            }
        }
        previous = line;
    }
    found
}

/// Parses the mark in the line before a block.
fn tested(place: &str, line: &str) -> Tested {
    let Some(mark) = line.strip_prefix("<!-- ") else { return Tested::Here };
    let mark = mark.strip_suffix(" -->").unwrap_or_else(|| panic!("{place}: unclosed mark"));
    match (mark.strip_prefix("run by "), mark.strip_prefix("not run: ")) {
        (Some(file), _) => Tested::By(file.to_owned()),
        (_, Some(reason)) => Tested::Not(reason.to_owned()),
        _ => panic!("{place}: the mark is neither \"run by FILE\" nor \"not run: REASON\": {mark}"),
    }
}
