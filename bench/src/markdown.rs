//! Markdown tables and the verdicts in them.

use std::fmt;

/// A table: a header and rows of as many cells.
#[derive(Debug, Clone)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(header: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { header: header.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// One more row.
    pub fn push(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

/// With a line break at the end.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {} |", self.header.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(self.header.len()))?;
        for row in &self.rows {
            writeln!(f, "| {} |", row.join(" | "))?;
        }
        Ok(())
    }
}

/// The most that a figure may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target(pub f64);

impl Target {
    /// Whether this figure is within it, in words.
    #[must_use]
    pub fn verdict(self, figure: f64) -> &'static str {
        if figure <= self.0 { "met" } else { "not met" }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "≤ {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_markdown() {
        let mut table = Table::new(["a", "b"]);
        table.push(["1".to_owned(), "2".to_owned()]);
        assert_eq!(table.to_string(), "| a | b |\n|---|---|\n| 1 | 2 |\n");
    }

    #[test]
    fn a_target_is_met_up_to_itself_and_never_by_nothing() {
        assert_eq!(Target(0.5).verdict(0.5), "met");
        assert_eq!(Target(0.5).verdict(0.51), "not met");
        assert_eq!(Target(0.5).verdict(f64::NAN), "not met");
    }
}
