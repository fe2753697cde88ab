//! Draws the comparisons as bars on a logarithmic axis, with tollgate at 1.

use super::rows::Row;
use crate::svg::{Anchor, Drawing};

const WIDTH: f64 = 760.0;
const ROW_HEIGHT: f64 = 20.0;
/// Space above the first row, for the title and the ends of the axis.
const TOP: f64 = 66.0;
/// Space below the last row, for the numbers of the axis.
const BOTTOM: f64 = 34.0;
/// The ends of the axis; surface, workload and peer are at its left.
const AXIS: [f64; 2] = [404.0, 694.0];
const COLUMNS: [f64; 3] = [16.0, 106.0, 272.0];

const TICKS: [f64; 11] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0];

const SLOWER: usize = 0;
const FASTER: usize = 1;

/// Draws the speeds of peers as multiples of tollgate's.
pub(super) fn draw(bars: &[(&Row, f64)]) -> String {
    let speeds = || bars.iter().map(|(_, speed)| *speed);
    let low = speeds().fold(0.5, f64::min) * 0.8;
    let high = speeds().fold(2.0, f64::max) * 1.25;
    let [left, right] = AXIS;
    let x = |speed: f64| left + (right - left) * (speed / low).ln() / (high / low).ln();
    let bottom = bars.iter().fold(TOP, |y, _| y + ROW_HEIGHT);
    let mut drawing = Drawing::new(WIDTH, bottom + BOTTOM, &description(bars));
    drawing.text([16.0, 26.0], Anchor::Start, "title", "Speed of each peer; Tollgate = 1");
    drawing.text([x(1.0) - 8.0, TOP - 14.0], Anchor::End, "label0", "← slower than Tollgate");
    drawing.text([x(1.0) + 8.0, TOP - 14.0], Anchor::Start, "label1", "faster →");
    for tick in TICKS.into_iter().filter(|tick| (low..=high).contains(tick)) {
        let x = x(tick);
        drawing.line("grid", [x, TOP - 4.0], [x, bottom + 4.0]);
        drawing.text([x, bottom + 20.0], Anchor::Middle, "dim", &format!("{tick}"));
    }
    drawing.text(
        [16.0, bottom + 20.0],
        Anchor::Start,
        "dim",
        "logarithmic axis; docs/BENCHMARKS.md",
    );
    let mut surface = "";
    for (nth, (row, speed)) in (0_u32..).zip(bars) {
        let y = TOP + ROW_HEIGHT * f64::from(nth);
        let [surface_x, workload_x, peer_x] = COLUMNS;
        let text = y + 14.0;
        if row.surface != surface {
            surface = row.surface;
            drawing.line("grid", [16.0, y], [WIDTH - 16.0, y]);
            drawing.text([surface_x, text], Anchor::Start, "title", surface);
        }
        drawing.text([workload_x, text], Anchor::Start, "text", row.workload);
        drawing.text([peer_x, text], Anchor::Start, "text", row.peer);
        let series = if *speed > 1.0 { FASTER } else { SLOWER };
        drawing.bar(series, [x(1.0), x(*speed)], y + 4.0, ROW_HEIGHT - 7.0);
        drawing.text([WIDTH - 16.0, text], Anchor::End, "text", &format!("{speed:.2}"));
    }
    drawing.line("axis", [x(1.0), TOP - 4.0], [x(1.0), bottom + 4.0]);
    drawing.finish()
}

fn description(bars: &[(&Row, f64)]) -> String {
    let bars = bars
        .iter()
        .map(|(row, speed)| format!("{}, {}: {} {speed:.2}", row.surface, row.workload, row.peer));
    let bars: Vec<String> = bars.collect();
    format!("Speed of peers as multiples of Tollgate's. {}", bars.join("; "))
}
