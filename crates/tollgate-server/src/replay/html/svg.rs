//! Numbers, scales and axes of the plots.

use std::fmt::Write as _;

/// Size of a plot in its own units; the page scales it.
pub(super) const WIDTH: f64 = 720.0;
pub(super) const HEIGHT: f64 = 200.0;
/// Space for the labels of the axes.
pub(super) const LEFT: f64 = 52.0;
pub(super) const RIGHT: f64 = 12.0;
pub(super) const TOP: f64 = 14.0;
pub(super) const BOTTOM: f64 = 24.0;

/// Converts a count for a plot, where a difference in the last digits is not visible.
#[expect(clippy::cast_precision_loss, reason = "for plots")]
pub(super) const fn float(number: u64) -> f64 {
    number as f64
}

/// Returns the x of a share between 0 (left end) and 1 (right end).
pub(super) fn x(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

/// Returns the y of a share between 0 (bottom) and 1 (top).
pub(super) fn y(share: f64) -> f64 {
    HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
}

/// Opens a plot with a title for screen readers.
pub(super) fn open(out: &mut String, title: &str) {
    let _ = write!(out, r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">"#);
}

/// Writes a horizontal line with its label at the left.
pub(super) fn grid_line(out: &mut String, share: f64, label: &str) {
    let (y, end, label_x) = (y(share), WIDTH - RIGHT, LEFT - 6.0);
    let _ = write!(
        out,
        r#"<line class="grid" x1="{LEFT}" x2="{end}" y1="{y:.1}" y2="{y:.1}"/><text x="{label_x}" y="{:.1}" text-anchor="end">{label}</text>"#,
        y + 4.0
    );
}

/// Writes a label below the plot.
pub(super) fn bottom_label(out: &mut String, x: f64, anchor: &str, label: &str) {
    let _ = write!(
        out,
        r#"<text x="{x:.1}" y="{:.1}" text-anchor="{anchor}">{label}</text>"#,
        HEIGHT - 6.0
    );
}

/// Returns a round number that is at least `number`: few digits times a power of ten.
pub(super) fn round_up(number: u64) -> u64 {
    let mut unit: u64 = 1;
    loop {
        for tenths in [10, 12, 15, 20, 30, 40, 60, 80] {
            let round = unit.saturating_mul(tenths) / 10;
            let is_whole = round * 10 == unit.saturating_mul(tenths);
            if (round >= number.max(1) && is_whole) || round >= u64::MAX / 10 {
                return round;
            }
        }
        unit = unit.saturating_mul(10);
    }
}

/// Writes a count in a short form: 950, 1.2k, 3.4M.
pub(super) fn short(number: u64) -> String {
    let scaled = |unit: u64, suffix: &str| {
        let tenths = number / (unit / 10);
        if tenths.is_multiple_of(10) || tenths >= 1000 {
            format!("{}{suffix}", tenths / 10)
        } else {
            format!("{}.{}{suffix}", tenths / 10, tenths % 10)
        }
    };
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => scaled(1000, "k"),
        _ => scaled(1_000_000, "M"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_scales_are_round() {
        assert_eq!(
            [7, 9999, 12_300, 1_000_000, 3_450_000].map(short),
            ["7", "9999", "12.3k", "1M", "3.4M"]
        );
        assert_eq!([0, 1, 3, 11, 999, 1000, 1001].map(round_up), [1, 1, 3, 12, 1000, 1000, 1200]);
        assert!(round_up(u64::MAX) >= u64::MAX / 10);
    }
}
