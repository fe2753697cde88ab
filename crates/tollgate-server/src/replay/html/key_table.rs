//! A table of refused keys, each with its timeline.

use std::fmt::Write as _;

use super::super::report::{Report, ReportedKey};
use super::escape::Escaped;
use super::svg::float;
use crate::wire::time::rfc3339;
use tollgate::Timestamp;
use tollgate::policy::RuleMode;

/// Number of keys on the page.
const SHOWN: usize = 15;
/// Size of a timeline.
const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 24.0;

pub(super) fn write(out: &mut String, report: &Report, keys: &[ReportedKey]) {
    if keys.is_empty() {
        out.push_str("<p class=\"quiet\">None.</p>");
        return;
    }
    out.push_str("<div class=\"keys\">");
    for key in keys.iter().take(SHOWN) {
        let shadow = if key.mode == RuleMode::Shadow { " <em>shadow</em>" } else { "" };
        let period = period(key.first, key.last);
        let _ = write!(
            out,
            "<div class=\"key\"><code>{}</code><span>{}{shadow}</span><b>{}</b>",
            Escaped(&key.key),
            Escaped(&key.rule),
            key.refused
        );
        write_timeline(out, report, key);
        let _ = write!(out, "<small>{period}</small></div>");
    }
    out.push_str("</div>");
}

fn write_timeline(out: &mut String, report: &Report, key: &ReportedKey) {
    let count = report.series.iter().map(|series| series.intervals.len()).max().unwrap_or_default();
    let slot = WIDTH / float(u64::try_from(count).unwrap_or(1).max(1));
    let max = key.timeline.iter().map(|(_, count)| count).max().unwrap_or(1);
    let _ = write!(
        out,
        r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="refusals over time" preserveAspectRatio="none">"#
    );
    let class = if key.mode == RuleMode::Shadow { "shadow" } else { "refused" };
    for (index, count) in key.timeline.iter() {
        let height = (HEIGHT * f64::from(count) / f64::from(max)).max(2.0);
        let from = report.scale.0 + report.scale.1.saturating_mul(u64::from(index));
        let _ = write!(
            out,
            r#"<rect class="{class}" x="{:.1}" y="{:.1}" width="{:.1}" height="{height:.1}"><title>{}: {count} refused</title></rect>"#,
            f64::from(index) * slot,
            HEIGHT - height,
            (slot - 0.4).max(1.0),
            time(from)
        );
    }
    out.push_str("</svg>");
}

/// Returns two times; the date of the second only if it differs.
fn period(first: u64, last: u64) -> String {
    let (first, last) = (time(first), time(last));
    let same_day =
        first.split_once(' ').zip(last.split_once(' ')).filter(|(first, last)| first.0 == last.0);
    match same_day {
        Some((_, (_, clock))) => format!("{first} – {clock}"),
        None => format!("{first} – {last}"),
    }
}

fn time(micros: u64) -> String {
    rfc3339(Timestamp::from_micros(micros - micros % 1_000_000)).replace('T', " ").replace('Z', "")
}
