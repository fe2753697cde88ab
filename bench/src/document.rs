//! One section of `docs/BENCHMARKS.md`: environment and method, then the tables.

use std::fmt;
use std::time::Duration;

use crate::machine::{self, RunInfo};
use crate::markdown::Table;

/// The text between the markers of one benchmark subject.
#[derive(Debug)]
pub struct Document<'g> {
    /// The heading.
    pub title: &'static str,
    /// Date, compiler and command.
    pub run_info: &'g RunInfo,
    /// Compared programs and libraries, with versions.
    pub peers: Vec<String>,
    /// How the figures were measured.
    pub figures: String,
    /// The results.
    pub sections: Vec<Section>,
}

/// One measurement: a description and its tables.
#[derive(Debug)]
pub struct Section {
    /// The heading.
    pub title: &'static str,
    /// A description of the measurement.
    pub note: String,
    /// The results.
    pub tables: Vec<Table>,
}

/// Describes figures of timed runs in which every candidate runs once per round.
#[must_use]
pub fn timed_rounds(rounds: u32, window: Duration, warm_up: Duration) -> String {
    format!(
        "median (min–max) of {rounds} rounds of {} s, each after {} s of warm-up; every candidate runs \
         once per round, ratios are computed per round",
        window.as_secs_f64(),
        warm_up.as_secs_f64(),
    )
}

impl fmt::Display for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunInfo { date, rustc, command } = self.run_info;
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
    fn document_lists_environment_before_results() {
        let run_info = RunInfo {
            date: "today".to_owned(),
            rustc: "rustc 1".to_owned(),
            command: "scripts/bench some".to_owned(),
        };
        let mut table = Table::new(["a"]);
        table.push(["1".to_owned()]);
        let document = Document {
            title: "Some",
            run_info: &run_info,
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
