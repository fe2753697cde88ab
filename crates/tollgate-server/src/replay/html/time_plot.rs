//! Requests and refusals of one rule over time, as bars.

use std::fmt::Write as _;

use super::super::report::Report;
use super::super::tally::{RuleInterval, RuleSeries};
use super::super::text::{counted, percent};
use super::svg::{self, float, x, y};
use crate::wire::time::rfc3339;
use tollgate::Timestamp;

/// Writes the plot of a rule: requests in grey, refusals (or those of a shadow rule, hatched) in front of them.
pub(super) fn write(out: &mut String, report: &Report, series: &RuleSeries) {
    let count = report.series.iter().map(|series| series.intervals.len()).max().unwrap_or_default();
    let max = series.intervals.iter().map(|interval| interval.requests).max().unwrap_or_default();
    let top = svg::round_up(max);
    svg::open(out, "requests and refusals over time");
    svg::grid_line(out, 0.0, "0");
    if top > 1 {
        svg::grid_line(out, 0.5, &half(top));
    }
    svg::grid_line(out, 1.0, &svg::short(top));
    for (index, interval) in series.intervals.iter().enumerate() {
        write_bar(out, report, index, count, top, interval);
    }
    svg::bottom_label(out, x(0.0), "start", &label(report.scale.0));
    svg::bottom_label(out, x(1.0), "end", &label(report.last));
    out.push_str("</svg>");
}

fn half(top: u64) -> String {
    if top.is_multiple_of(2) { svg::short(top / 2) } else { format!("{}.5", top / 2) }
}

fn write_bar(
    out: &mut String,
    report: &Report,
    index: usize,
    count: usize,
    top: u64,
    interval: &RuleInterval,
) {
    if interval.requests == 0 {
        return;
    }
    let number = u64::try_from(index).unwrap_or_default();
    let slots = float(u64::try_from(count).unwrap_or(1).max(1));
    let (left, right) = (x(float(number) / slots), x((float(number) + 1.0) / slots));
    let from =
        rfc3339(Timestamp::from_micros(report.scale.0 + report.scale.1.saturating_mul(number)));
    let RuleInterval { requests, refused, shadow } = *interval;
    let share = percent(refused.max(shadow), requests);
    let _ = write!(out, "<g><title>{from}: {}, {refused} refused", counted(requests, "request"));
    if shadow > 0 {
        let _ = write!(out, ", {shadow} would be refused");
    }
    let _ = write!(out, " ({share})</title>");
    let width = (right - left - 0.6).max(0.8);
    for (class, value) in [("requests", requests), ("shadow", shadow), ("refused", refused)] {
        if value > 0 {
            let at = y(float(value) / float(top));
            let height = (y(0.0) - at).max(1.0);
            let _ = write!(
                out,
                r#"<rect class="{class}" x="{left:.1}" y="{:.1}" width="{width:.1}" height="{height:.1}"/>"#,
                y(0.0) - height
            );
        }
    }
    out.push_str("</g>");
}

/// Returns a time to the second for an axis.
fn label(micros: u64) -> String {
    rfc3339(Timestamp::from_micros(micros - micros % 1_000_000)).replace('T', " ").replace('Z', "")
}
