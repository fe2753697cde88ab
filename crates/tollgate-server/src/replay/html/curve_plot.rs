//! The curve of one limit: its count on a logarithmic axis, the share of refused requests on the other.

use std::fmt::Write as _;

use super::super::suggestion::{ONE_PER_MILLE, ONE_PERCENT, Suggestion};
use super::super::text::percent;
use super::svg::{self, float, x, y};

/// Writes the plot of a curve with marks at the limit itself and at the two suggestions.
pub(super) fn write(out: &mut String, curve: &Suggestion) {
    let shown = shown_points(curve);
    let (Some(first), Some(last)) = (shown.first(), shown.last()) else { return };
    let (low, high) = (float(first.0).ln(), float(last.0.max(first.0 + 1)).ln());
    let place = |count: u64| x((float(count).ln() - low) / (high - low));
    let max = shown.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    let top = top(max);
    svg::open(out, "share of refused requests by limit");
    for part in [0.0, 0.5, 1.0] {
        svg::grid_line(out, part, &format!("{} %", trimmed(top * part * 100.0)));
    }
    let points: Vec<String> = shown
        .iter()
        .map(|(count, share)| format!("{:.1},{:.1}", place(*count), y(share / top)))
        .collect();
    let _ = write!(out, r#"<polyline class="curve" points="{}"/>"#, points.join(" "));
    for (count, share) in &shown {
        let refused = curve
            .points
            .iter()
            .find(|point| point.count == *count)
            .map_or(0, |point| point.refused);
        let _ = write!(
            out,
            r#"<circle class="point" cx="{:.1}" cy="{:.1}" r="3"><title>{count}/{}: {refused} of {} refused ({})</title></circle>"#,
            place(*count),
            y(share / top),
            curve.rate.window,
            curve.requests,
            percent(refused, curve.requests)
        );
    }
    write_marks(out, curve, (first.0, last.0), &place);
    svg::bottom_label(out, x(0.0), "start", &svg::short(first.0));
    svg::bottom_label(out, x(1.0), "end", &svg::short(last.0));
    out.push_str("</svg>");
}

fn write_marks(
    out: &mut String,
    curve: &Suggestion,
    shown: (u64, u64),
    place: &impl Fn(u64) -> f64,
) {
    let marks = [
        ("now", Some(curve.rate.count)),
        ("one", curve.smallest(ONE_PERCENT)),
        ("few", curve.smallest(ONE_PER_MILLE)),
    ];
    for (class, count) in marks {
        let Some(count) = count.filter(|count| (shown.0..=shown.1).contains(count)) else {
            continue;
        };
        let at = place(count);
        let _ = write!(
            out,
            r#"<line class="mark {class}" x1="{at:.1}" x2="{at:.1}" y1="{:.1}" y2="{:.1}"><title>{count}</title></line>"#,
            svg::TOP,
            y(0.0)
        );
    }
}

/// Returns the part of the curve that has something to show: up to the second count that refuses nothing, and at least
/// to the limit itself.
fn shown_points(curve: &Suggestion) -> Vec<(u64, f64)> {
    let mut shown = Vec::new();
    let mut without_refusals = 0;
    for point in &curve.points {
        if without_refusals >= 2 && point.count > curve.rate.count {
            break;
        }
        without_refusals += u32::from(point.refused == 0);
        shown.push((point.count, float(point.refused) / float(curve.requests.max(1))));
    }
    shown
}

/// Returns a round share that is at least `max`.
fn top(max: f64) -> f64 {
    let rounds = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
    rounds.into_iter().find(|round| max <= *round).unwrap_or(1.0)
}

/// Writes a percentage without trailing zeros.
fn trimmed(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
