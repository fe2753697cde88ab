//! One subject's part of the benchmarks: where and how it was taken, then its tables.

use std::fmt;
use std::time::Duration;

use crate::machine::{self, Given};
use crate::markdown::Table;

/// Everything between the markers of a subject.
#[derive(Debug)]
pub struct Document<'g> {
    /// What was measured.
    pub title: &'static str,
    /// When and with what.
    pub given: &'g Given,
    /// Beside whom, with versions.
    pub peers: Vec<String>,
    /// How one figure comes about.
    pub figures: String,
    /// What came out.
    pub sections: Vec<Section>,
}

/// One question: what was done, and its answer.
#[derive(Debug)]
pub struct Section {
    /// The question.
    pub title: &'static str,
    /// What was done.
    pub note: String,
    /// What came out.
    pub tables: Vec<Table>,
}

/// How a figure of timed runs comes about, where everyone has a turn in each round.
#[must_use]
pub fn by_turns(rounds: u32, window: Duration, warm_up: Duration) -> String {
    format!(
        "median (least–most) of {rounds} rounds of {} s, each after {} s that do not count; \
         everyone's turn in each round, ratios taken round by round",
        window.as_secs_f64(),
        warm_up.as_secs_f64(),
    )
}

impl fmt::Display for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Given { date, rustc, command } = self.given;
        writeln!(f, "## {}\n", self.title)?;
        writeln!(f, "- Machine: {}", machine::describe())?;
        writeln!(f, "- Date: {date}")?;
        writeln!(f, "- Compiler: {rustc}, release profile")?;
        if !self.peers.is_empty() {
            writeln!(f, "- Peers: {}", self.peers.join(", "))?;
        }
        writeln!(f, "- Command: `{command}`")?;
        writeln!(f, "- Figures: {}", self.figures)?;
        for Section { title, note, tables } in &self.sections {
            writeln!(f, "\n### {title}\n\n{note}")?;
            for table in tables {
                write!(f, "\n{table}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_says_how_it_was_taken_before_what_came_out() {
        let given = Given {
            date: "today".to_owned(),
            rustc: "rustc 1".to_owned(),
            command: "scripts/bench some".to_owned(),
        };
        let mut table = Table::new(["a"]);
        table.push(["1".to_owned()]);
        let document = Document {
            title: "Some",
            given: &given,
            peers: vec!["one 1.0".to_owned(), "two 2.0".to_owned()],
            figures: "medians".to_owned(),
            sections: vec![Section {
                title: "Part",
                note: "Note.".to_owned(),
                tables: vec![table],
            }],
        };
        let text = document.to_string();
        assert!(text.starts_with("## Some\n\n- Machine: "), "{text}");
        let rest = "- Date: today\n- Compiler: rustc 1, release profile\n- Peers: one 1.0, two 2.0\n\
                    - Command: `scripts/bench some`\n- Figures: medians\n\n### Part\n\nNote.\n\n\
                    | a |\n|---|\n| 1 |\n";
        assert!(text.ends_with(rest), "{text}");
    }
}
