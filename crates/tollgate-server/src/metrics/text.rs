//! Encoder for the Prometheus text format 0.0.4.

use std::fmt::Write;

use super::histogram::Histogram;

/// The value of a gauge that was not set yet. No count is that large.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// The text encoded up to now.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
}

/// One metric family; samples are appended to it.
pub(super) struct Metric<'t> {
    text: &'t mut String,
    name: &'static str,
}

impl Exposition {
    pub(super) fn counter(&mut self, name: &'static str, help: &str) -> Metric<'_> {
        self.metric(name, help, "counter")
    }

    pub(super) fn gauge(&mut self, name: &'static str, help: &str) -> Metric<'_> {
        self.metric(name, help, "gauge")
    }

    /// Starts a histogram. Its series follow, each with [`series`](Self::series).
    pub(super) fn histogram(&mut self, name: &'static str, help: &str) {
        self.metric(name, help, "histogram");
    }

    /// Appends one series of a histogram. `label` is its label, if it has one.
    pub(super) fn series<const N: usize>(
        &mut self,
        name: &'static str,
        label: Option<(&str, &str)>,
        histogram: &Histogram<N>,
    ) {
        let label = label.map(|(label, value)| format!("{label}=\"{value}\""));
        let prefix = label.as_ref().map_or_else(String::new, |label| format!("{label},"));
        let labels = label.map_or_else(String::new, |label| format!("{{{label}}}"));
        let mut total = 0;
        for (bound, count) in histogram.cumulative() {
            total = count;
            self.line(format_args!("{name}_bucket{{{prefix}le=\"{bound}\"}} {count}"));
        }
        total += histogram.overflow();
        let nanos = histogram.total_nanos();
        let (seconds, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        self.line(format_args!("{name}_bucket{{{prefix}le=\"+Inf\"}} {total}"));
        self.line(format_args!("{name}_sum{labels} {seconds}.{fraction:09}"));
        self.line(format_args!("{name}_count{labels} {total}"));
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn metric(&mut self, name: &'static str, help: &str, kind: &str) -> Metric<'_> {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
        Metric { text: &mut self.text, name }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing into a String cannot fail.
        let _ = writeln!(self.text, "{line}");
    }
}

impl Metric<'_> {
    /// Writes one sample without labels, given in hundredths.
    pub(super) fn hundredths(&mut self, value: u64) {
        // Writing into a String cannot fail.
        let _ = writeln!(self.text, "{} {}.{:02}", self.name, value / 100, value % 100);
    }

    /// Writes one sample of a gauge unless its value is [`UNKNOWN`]: 0 would be a statement.
    pub(super) fn sample_known(&mut self, labels: &[(&str, &str)], value: u64) -> &mut Self {
        if value == UNKNOWN { self } else { self.sample(labels, value) }
    }

    /// Writes one sample. Label values are fixed words and rule names, which need no escaping.
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: u64) -> &mut Self {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
        let labels = match &*labels.join(",") {
            "" => String::new(),
            joined => format!("{{{joined}}}"),
        };
        // Writing into a String cannot fail.
        let _ = writeln!(self.text, "{}{labels} {value}", self.name);
        self
    }
}
