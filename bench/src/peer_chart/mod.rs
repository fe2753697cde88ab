//! The chart of the README: Tollgate beside each peer, from the figures in `docs/BENCHMARKS.md`.
//!
//! `rows` lists the comparisons, `figures` finds their figures in the document, `drawing` draws them.

mod drawing;
mod figures;
mod rows;

use crate::Outcome;

/// Returns the chart for the text of `docs/BENCHMARKS.md`, as SVG.
///
/// # Errors
/// The document lacks the figure of a comparison.
pub fn draw(benchmarks: &str) -> Outcome<String> {
    let bars = rows::ROWS.iter().map(|row| Ok((row, row.peer_speed(benchmarks)?)));
    Ok(drawing::draw(&bars.collect::<Outcome<Vec<_>>>()?))
}
