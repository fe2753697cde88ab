//! The page: figures, plots of each rule, refused keys, and the curves.

use std::fmt::Write as _;

use super::super::report::Report;
use super::super::suggestion::{ONE_PER_MILLE, ONE_PERCENT, Suggestion};
use super::super::text::{counted, notes, percent};
use super::escape::Escaped;
use super::svg::short;
use super::{curve_plot, key_table, time_plot};

/// Maximum number of rules with a plot, those with the most refusals first.
const MAX_RULES: usize = 20;

const STYLE: &str = include_str!("style.css");

/// Returns the report as an HTML page that needs no other file.
pub(crate) fn page(report: &Report) -> String {
    let mut out = String::with_capacity(64 * 1024);
    out.push_str("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    out.push_str("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">\n");
    let _ = writeln!(
        out,
        "<title>Replay of {}</title><style>{STYLE}</style></head><body><main>",
        Escaped(&report.policy)
    );
    write_header(&mut out, report);
    write_rules(&mut out, report);
    let _ = write!(
        out,
        "<h2>Most refused keys</h2><p class=\"quiet\">{} keys were refused at least once. Times are in UTC.</p>",
        report.refused_keys
    );
    key_table::write(&mut out, report, &report.keys);
    write_curves(&mut out, &report.suggestions);
    write_comparison(&mut out, report);
    write_notes(&mut out, report);
    out.push_str("</main></body></html>\n");
    out
}

fn write_header(out: &mut String, report: &Report) {
    let logs: Vec<String> =
        report.logs.iter().take(5).map(|log| Escaped(log).to_string()).collect();
    let more = if report.logs.len() > 5 { " …" } else { "" };
    let _ = write!(
        out,
        "<header><h1>Replay</h1><p>Policy <code>{}</code> on <code>{}</code>{more}</p></header><section class=\"cards\">",
        Escaped(&report.policy),
        logs.join("</code> <code>")
    );
    let figures = [
        ("requests", short(report.requests), ""),
        ("allowed", short(report.allowed()), ""),
        ("refused", short(report.refused), "refused"),
        ("share refused", percent(report.refused, report.requests), "refused"),
        ("lines skipped", short(report.skipped.count()), ""),
    ];
    for (label, figure, class) in figures {
        let _ =
            write!(out, "<div class=\"card {class}\"><b>{figure}</b><span>{label}</span></div>");
    }
    out.push_str("</section>");
}

fn write_rules(out: &mut String, report: &Report) {
    out.push_str("<h2>Requests over time</h2><p class=\"legend\"><i class=\"requests\"></i>requests <i class=\"refused\"></i>refused <i class=\"shadow\"></i>would be refused (shadow)</p><div class=\"curves\">");
    let mut series: Vec<_> = report.series.iter().filter(|series| series.requests > 0).collect();
    series
        .sort_by_key(|series| std::cmp::Reverse((series.refused, series.shadow, series.requests)));
    for series in series.into_iter().take(MAX_RULES) {
        let refused = series.refused.max(series.shadow);
        let _ = write!(
            out,
            "<figure><figcaption><b>{}</b> {}, {} {} ({})</figcaption>",
            Escaped(&series.rule),
            counted(series.requests, "request"),
            refused,
            if series.shadow > series.refused { "would be refused" } else { "refused" },
            percent(refused, series.requests)
        );
        time_plot::write(out, report, series);
        out.push_str("</figure>");
    }
    out.push_str("</div>");
}

fn write_curves(out: &mut String, suggestions: &[Suggestion]) {
    out.push_str("<h2>Limit and share refused</h2><p class=\"quiet\">Each limit tried at other counts, alone, with the burst in proportion.</p><p class=\"legend\"><i class=\"now\"></i>limit of the policy <i class=\"one\"></i>≤ 1 % refused <i class=\"few\"></i>≤ 0.1 % refused</p><div class=\"curves\">");
    for curve in suggestions.iter().filter(|curve| curve.requests > 0) {
        let smallest = |thousandths| {
            curve.smallest(thousandths).map_or_else(|| "–".to_owned(), |count| count.to_string())
        };
        let now = curve.refused_now().map_or_else(String::new, |refused| {
            format!(" ({} refused)", percent(refused, curve.requests))
        });
        let _ = write!(
            out,
            "<figure><figcaption><b>{}</b> {} is {}{now}; smallest for ≤ 1 %: <b>{}</b>, for ≤ 0.1 %: <b>{}</b></figcaption>",
            Escaped(&curve.rule),
            Escaped(&curve.limit_name),
            Escaped(&curve.rate.to_string()),
            smallest(ONE_PERCENT),
            smallest(ONE_PER_MILLE)
        );
        curve_plot::write(out, curve);
        out.push_str("</figure>");
    }
    out.push_str("</div>");
}

fn write_comparison(out: &mut String, report: &Report) {
    let Some(comparison) = &report.comparison else { return };
    let _ = write!(
        out,
        "<h2>Compared with <code>{}</code></h2><p>It refuses {} instead of {}.</p><h3>Newly refused: {} keys</h3>",
        Escaped(&comparison.policy),
        counted(comparison.refused, "request"),
        report.refused,
        comparison.newly_refused_keys
    );
    key_table::write(out, report, &comparison.newly_refused);
    let _ = write!(out, "<h3>No longer refused: {} keys</h3>", comparison.no_longer_refused_keys);
    key_table::write(out, report, &comparison.no_longer_refused);
}

fn write_notes(out: &mut String, report: &Report) {
    let notes = notes(report);
    if notes.is_empty() {
        return;
    }
    out.push_str("<h2>Notes</h2><ul>");
    for note in notes {
        // A note can be longer than the limit of one escaped text.
        let parts: Vec<char> = note.chars().take(400).collect();
        let text: String = parts
            .chunks(60)
            .map(|part| Escaped(&part.iter().collect::<String>()).to_string())
            .collect();
        let _ = write!(out, "<li>{text}</li>");
    }
    out.push_str("</ul>");
}
