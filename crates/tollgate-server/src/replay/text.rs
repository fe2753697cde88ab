//! The report as text.

use std::fmt::Write as _;

use tollgate::Timestamp;
use tollgate::policy::RuleMode;

use super::report::{Comparison, Report, ReportedKey};
use super::source::SkippedLines;
use super::suggestion::{ONE_PER_MILLE, ONE_PERCENT, Suggestion};
use super::tally::{LimitCount, RuleInterval};
use crate::wire::time::rfc3339;

/// Number of keys in the text.
const SHOWN_KEYS: usize = 20;
/// Maximum length of a key in the text, in characters.
const MAX_KEY: usize = 60;
/// Number of intervals in the text.
const ROWS: usize = 24;

/// Returns the messages about skipped lines and about the figures, one per line.
pub(crate) fn notes(report: &Report) -> Vec<String> {
    let mut notes = skipped_notes(&report.skipped);
    if report.requests == 0 && report.skipped.count() == 0 {
        notes.push("the log is empty".to_owned());
    }
    notes.extend(report.notes.iter().cloned());
    notes
}

/// Returns the messages about skipped lines.
pub(crate) fn skipped_notes(skipped: &SkippedLines) -> Vec<String> {
    let mut notes = Vec::new();
    if skipped.malformed > 0 {
        let count = counted(skipped.malformed, "malformed line");
        notes.push(format!("{count} skipped; the first:"));
        for line in &skipped.first {
            notes.push(format!("  {}:{}: {}: {}", line.file, line.number, line.reason, line.text));
        }
    }
    if let Some(first) = &skipped.first_late {
        let count = counted(skipped.late, "line");
        notes.push(format!(
            "{count} skipped, because the time is more than 5 minutes before that of an earlier line; the first: {}:{}",
            first.file, first.number
        ));
    }
    notes
}

/// Returns a count with its noun: 1 request, 2 requests.
pub(super) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns the report for people.
pub(crate) fn report(report: &Report) -> String {
    let mut out = String::new();
    let (requests, refused) = (report.requests, report.refused);
    let share = percent(refused, requests);
    let _ = writeln!(
        out,
        "{}, {} allowed, {refused} refused ({share})",
        counted(requests, "request"),
        report.allowed()
    );
    if requests > 0 {
        let _ = writeln!(out, "from {} to {}", time(report.scale.0), time(report.last));
    }
    if report.skipped.count() > 0 {
        let _ = writeln!(out, "{} skipped", counted(report.skipped.count(), "line"));
    }
    write_limits(&mut out, report);
    let title = format!("Most refused keys ({} in all)", report.refused_keys);
    write_keys(&mut out, &title, &report.keys);
    write_intervals(&mut out, report);
    write_suggestions(&mut out, &report.suggestions);
    if let Some(comparison) = &report.comparison {
        write_comparison(&mut out, comparison);
    }
    out
}

fn write_limits(out: &mut String, report: &Report) {
    let row = |row: &LimitCount| {
        let series = report.series.iter().find(|series| series.rule == row.rule);
        let requests = series.map_or(0, |series| series.requests);
        [
            row.rule.clone(),
            row.limit_name.clone(),
            row.mode.as_str().to_owned(),
            requests.to_string(),
            row.refused.to_string(),
            percent(row.refused, requests),
        ]
    };
    let rows: Vec<[String; 6]> = report.limits.iter().map(row).collect();
    write_table(out, "Limits", ["rule", "limit", "mode", "requests", "refused", "share"], &rows);
}

fn write_keys(out: &mut String, title: &str, keys: &[ReportedKey]) {
    let row = |key: &ReportedKey| {
        let mode = if key.mode == RuleMode::Shadow { " (shadow)" } else { "" };
        [
            printable(&key.key),
            format!("{}{mode}", key.rule),
            key.refused.to_string(),
            time(key.first),
            time(key.last),
        ]
    };
    let rows: Vec<[String; 5]> = keys.iter().take(SHOWN_KEYS).map(row).collect();
    write_table(out, title, ["key", "rule", "refused", "first", "last"], &rows);
}

fn write_intervals(out: &mut String, report: &Report) {
    let merged = report.total.len().div_ceil(ROWS).max(1);
    let mut rows = Vec::new();
    for (row, intervals) in report.total.chunks(merged).enumerate() {
        let start = row * merged;
        let sum = |count: fn(&RuleInterval) -> u64| intervals.iter().map(count).sum::<u64>();
        let requests = sum(|interval| interval.requests);
        let refused = sum(|interval| interval.refused);
        let shadow = sum(|interval| interval.shadow);
        let offset = report.scale.1.saturating_mul(u64::try_from(start).unwrap_or_default());
        rows.push([
            time(report.scale.0 + offset),
            requests.to_string(),
            refused.to_string(),
            percent(refused, requests),
            shadow.to_string(),
        ]);
    }
    write_table(out, "Over time", ["from", "requests", "refused", "share", "shadow"], &rows);
}

fn write_suggestions(out: &mut String, suggestions: &[Suggestion]) {
    let count =
        |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    let row = |suggestion: &Suggestion| {
        [
            suggestion.rule.clone(),
            suggestion.limit_name.clone(),
            suggestion.rate.to_string(),
            count(suggestion.smallest(ONE_PER_MILLE)),
            count(suggestion.smallest(ONE_PERCENT)),
        ]
    };
    let rows: Vec<[String; 5]> = suggestions.iter().map(row).collect();
    let title = "Smallest limit that refuses at most 0.1 % and 1 % of the rule's requests (this limit alone)";
    write_table(out, title, ["rule", "limit", "now", "0.1 %", "1 %"], &rows);
}

fn write_comparison(out: &mut String, comparison: &Comparison) {
    let Comparison { policy, refused, .. } = comparison;
    let _ = writeln!(out, "\nCompared with {}: {refused} refused", printable(policy));
    let title = format!("Newly refused ({} keys)", comparison.newly_refused_keys);
    write_keys(out, &title, &comparison.newly_refused);
    let title = format!("No longer refused ({} keys)", comparison.no_longer_refused_keys);
    write_keys(out, &title, &comparison.no_longer_refused);
}

/// Writes a table with columns of equal width. Without rows, writes nothing.
fn write_table<const N: usize>(
    out: &mut String,
    title: &str,
    head: [&str; N],
    rows: &[[String; N]],
) {
    if rows.is_empty() {
        return;
    }
    let mut widths = head.map(|text| text.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let _ = writeln!(out, "\n{title}");
    for row in std::iter::once(&head.map(str::to_owned)).chain(rows) {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        let _ = writeln!(out, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

/// Returns a text without control characters, which could change what a terminal shows, cut to [`MAX_KEY`].
fn printable(text: &str) -> String {
    let mut printable: String = text.chars().take(MAX_KEY).flat_map(char::escape_debug).collect();
    if text.chars().count() > MAX_KEY {
        printable.push('…');
    }
    printable
}

fn time(micros: u64) -> String {
    rfc3339(Timestamp::from_micros(micros))
}

/// Returns a share with two decimals, rounded up: 0.00 % means none.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let hundredths = (u128::from(part) * 10_000).div_ceil(u128::from(whole.max(1)));
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}
