//! Markdown tables and performance targets.

use std::fmt;

/// A Markdown table.
#[derive(Debug, Clone)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table without rows.
    pub fn new(header: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { header: header.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Appends a row.
    pub fn push(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

/// Ends with a line break.
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

/// A performance target for one figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// The figure must be at most this.
    AtMost(f64),
    /// The figure must be at least this.
    AtLeast(f64),
    /// The figure must be greater than this.
    Above(f64),
}

impl Target {
    /// Returns `met` or `not met` for a figure.
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
    fn renders_a_markdown_table() {
        let mut table = Table::new(["a", "b"]);
        table.push(["1".to_owned(), "2".to_owned()]);
        assert_eq!(table.to_string(), "| a | b |\n|---|---|\n| 1 | 2 |\n");
    }

    #[test]
    fn target_includes_its_bound_and_rejects_nan() {
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
    fn target_is_displayed_with_its_direction() {
        let targets = [Target::AtMost(0.5), Target::AtLeast(0.9), Target::Above(1.0)];
        assert_eq!(targets.map(|target| target.to_string()), ["≤ 0.5", "≥ 0.9", "> 1"]);
    }
}
