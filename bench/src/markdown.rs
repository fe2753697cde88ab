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

/// What a figure has to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
    /// More than this.
    Above(f64),
}

impl Target {
    /// Whether this figure is within it, in words.
    #[must_use]
    pub fn verdict(self, figure: f64) -> &'static str {
        let met = match self {
            Self::AtMost(bound) => figure <= bound,
            Self::AtLeast(bound) => figure >= bound,
            Self::Above(bound) => figure > bound,
        };
        if met { "met" } else { "not met" }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(bound) => write!(f, "≤ {bound}"),
            Self::AtLeast(bound) => write!(f, "≥ {bound}"),
            Self::Above(bound) => write!(f, "> {bound}"),
        }
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
        assert_eq!(Target::AtMost(0.5).verdict(0.5), "met");
        assert_eq!(Target::AtMost(0.5).verdict(0.51), "not met");
        assert_eq!(Target::AtLeast(0.9).verdict(0.9), "met");
        assert_eq!(Target::AtLeast(0.9).verdict(0.89), "not met");
        assert_eq!(Target::Above(1.0).verdict(1.01), "met");
        assert_eq!(Target::Above(1.0).verdict(1.0), "not met");
        for target in [Target::AtMost(1.0), Target::AtLeast(1.0), Target::Above(1.0)] {
            assert_eq!(target.verdict(f64::NAN), "not met");
        }
    }

    #[test]
    fn a_target_is_shown_with_its_direction() {
        let targets = [Target::AtMost(0.5), Target::AtLeast(0.9), Target::Above(1.0)];
        assert_eq!(targets.map(|target| target.to_string()), ["≤ 0.5", "≥ 0.9", "> 1"]);
    }
}
