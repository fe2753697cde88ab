//! Figures of the tables in `docs/BENCHMARKS.md`.

use crate::Outcome;

/// Where a figure is in the document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The name in the markers of a section.
    pub(super) section: &'static str,
    /// The heading of a part of the section.
    pub(super) heading: &'static str,
    /// The first header of the table.
    pub(super) table: &'static str,
    /// The first cell of the row.
    pub(super) row: &'static str,
    /// The header of the column.
    pub(super) column: &'static str,
}

impl Place {
    /// Returns the median in this cell.
    ///
    /// # Errors
    /// The document lacks the cell, or it is not a positive number. The error names the place.
    pub(super) fn figure(&self, benchmarks: &str) -> Outcome<f64> {
        let error = |problem: &str| {
            let Self { section, heading, table, row, column } = self;
            format!(
                "docs/BENCHMARKS.md: {problem}: section {section}, heading \"{heading}\", table \"{table}\", \
                 row \"{row}\", column \"{column}\""
            )
        };
        let cell = self.cell(benchmarks).ok_or_else(|| error("figure not found"))?;
        let median = cell.split(' ').next().and_then(|median| median.parse().ok());
        let positive = median.filter(|median: &f64| median.is_finite() && *median > 0.0);
        Ok(positive.ok_or_else(|| error(&format!("\"{cell}\" is not a positive number")))?)
    }

    fn cell<'b>(&self, benchmarks: &'b str) -> Option<&'b str> {
        let (_, section) = benchmarks.split_once(&format!("<!-- {}:begin -->\n", self.section))?;
        let (section, _) = section.split_once("<!-- ")?;
        let (_, part) = section.split_once(&format!("### {}\n", self.heading))?;
        let part = part.split("\n### ").next()?;
        part.split("\n\n").find_map(|table| {
            let mut lines = table.lines().map(cells);
            let header = lines.next().filter(|header| header.first() == Some(&self.table))?;
            let column = header.iter().position(|name| *name == self.column)?;
            let row = lines.find(|cells| cells.first() == Some(&self.row))?;
            row.get(column).copied()
        })
    }
}

fn cells(line: &str) -> Vec<&str> {
    let line = line.trim().trim_start_matches('|').trim_end_matches('|');
    line.split('|').map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "<!-- core:begin -->\n### Decisions\n\nNote.\n\n| ns | a | b |\n|---|---|---|\n\
                        | hot | 10 (9–11) | 20 (19–21) |\n\n| × b | a |\n|---|---|\n| hot | 0.50 (0.47–0.53) |\n\
                        | cold | NaN |\n\n### Other\n\n| ns | a |\n|---|---|\n| cold | 7 |\n<!-- core:end -->\n";

    const PLACE: Place =
        Place { section: "core", heading: "Decisions", table: "× b", row: "hot", column: "a" };

    #[test]
    fn tables_are_found_by_their_first_header() {
        assert!((PLACE.figure(TEXT).unwrap() - 0.5).abs() < 1e-9);
        let time = Place { table: "ns", column: "b", ..PLACE };
        assert!((time.figure(TEXT).unwrap() - 20.0).abs() < 1e-9);
    }

    #[test]
    fn error_names_the_missing_figure() {
        for place in [
            Place { section: "http", ..PLACE },
            Place { heading: "Decision", ..PLACE },
            Place { table: "ms", ..PLACE },
            // Only in the table of another heading.
            Place { table: "ns", row: "cold", ..PLACE },
            Place { column: "c", ..PLACE },
        ] {
            let error = place.figure(TEXT).unwrap_err().to_string();
            assert!(error.starts_with("docs/BENCHMARKS.md: figure not found: section "), "{error}");
            assert!(error.ends_with(&format!("column \"{}\"", place.column)), "{error}");
        }
        let error = Place { row: "cold", ..PLACE }.figure(TEXT).unwrap_err().to_string();
        assert!(error.contains("\"NaN\" is not a positive number: section core"), "{error}");
    }
}
