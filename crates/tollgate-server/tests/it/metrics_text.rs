//! Strict parser for the Prometheus text format 0.0.4.

use std::collections::{BTreeMap, BTreeSet};

use crate::service::Service;

/// One scrape: every series, and the type of every metric.
#[derive(Debug)]
pub(crate) struct Scrape {
    series: BTreeMap<String, f64>,
    types: BTreeMap<String, String>,
    labels: BTreeSet<(String, String)>,
}

impl Scrape {
    /// Scrapes a service and validates the response.
    pub(crate) fn of(service: &Service) -> Self {
        let reply = service.get("/metrics");
        assert_eq!(reply.status, 200);
        let kind = reply.header("content-type");
        assert_eq!(kind, Some("text/plain; version=0.0.4; charset=utf-8"));
        Self::read(&reply.body)
    }

    fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line has no newline");
        let mut scrape =
            Self { series: BTreeMap::new(), types: BTreeMap::new(), labels: BTreeSet::new() };
        let (mut helped, mut current) = (BTreeSet::new(), String::new());
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, words) = help.split_once(' ').expect("a help text");
                assert!(is_name(name) && !words.is_empty(), "{line}");
                assert!(helped.insert(name.to_owned()), "second HELP: {line}");
                name.clone_into(&mut current);
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a type");
                assert_eq!(name, current, "TYPE does not follow its HELP: {line}");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                let previous = scrape.types.insert(name.to_owned(), kind.to_owned());
                assert_eq!(previous, None, "second TYPE: {line}");
            } else {
                scrape.add_sample(&current, line);
            }
        }
        scrape.check_histograms();
        scrape
    }

    fn add_sample(&mut self, current: &str, line: &str) {
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}').expect("a closing brace")),
            None => (series, ""),
        };
        assert!(is_name(name), "{line}");
        let kind = self.types.get(current).unwrap_or_else(|| panic!("sample without TYPE: {line}"));
        let suffixes = ["_bucket", "_sum", "_count"];
        let belongs = match kind.as_str() {
            "histogram" => {
                name.strip_prefix(current).is_some_and(|suffix| suffixes.contains(&suffix))
            }
            _ => name == current,
        };
        assert!(belongs, "sample of another metric among those of {current}: {line}");
        let mut seen = BTreeSet::new();
        for pair in labels.split(',').filter(|pair| !pair.is_empty()) {
            let (label, quoted) = pair.split_once('=').expect("a label has a value");
            let inner = quoted.strip_prefix('"').and_then(|quoted| quoted.strip_suffix('"'));
            let inner = inner.unwrap_or_else(|| panic!("not quoted: {line}"));
            assert!(is_name(label) && !inner.contains(['"', '\\', '\n']), "{line}");
            assert!(seen.insert(label), "duplicate label: {line}");
            self.labels.insert((label.to_owned(), inner.to_owned()));
        }
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("not a number: {line}"));
        assert!(value.is_finite() && value >= 0.0, "{line}");
        assert_eq!(self.series.insert(series.to_owned(), value), None, "duplicate series: {line}");
    }

    fn check_histograms(&self) {
        for (name, _) in self.types.iter().filter(|(_, kind)| *kind == "histogram") {
            for (labels, bounds) in self.histograms(name) {
                assert!(bounds.is_sorted_by(|(a, _), (b, _)| a < b), "{name}: unsorted bounds");
                assert!(bounds.is_sorted_by(|(_, a), (_, b)| a <= b), "{name}: decreasing counts");
                let (last, total) = bounds.last().expect("a histogram has buckets");
                assert!(last.is_infinite(), "{name}: the last bucket is not +Inf");
                let labels = labels.trim_end_matches(',');
                let labels =
                    if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
                let count = self.series.get(&format!("{name}_count{labels}"));
                assert_eq!(Some(total), count, "{name}{labels}");
                assert!(self.series.contains_key(&format!("{name}_sum{labels}")), "{name}{labels}");
            }
        }
    }

    /// Returns the buckets of a histogram by its labels, sorted by bound.
    fn histograms(&self, name: &str) -> BTreeMap<String, Vec<(f64, f64)>> {
        let prefix = format!("{name}_bucket{{");
        let mut found: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for (series, count) in &self.series {
            let Some(labels) = series.strip_prefix(&prefix) else { continue };
            let (labels, bound) = labels.split_once("le=\"").expect("a bucket has a bound");
            let bound = bound.strip_suffix("\"}").expect("le is the last label");
            let bound = bound.replace("+Inf", "inf").parse().expect("a bound");
            found.entry(labels.to_owned()).or_default().push((bound, *count));
        }
        for buckets in found.values_mut() {
            buckets.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        }
        found
    }

    /// Returns the value of one series, such as `name{label="value"}`.
    pub(crate) fn value(&self, series: &str) -> f64 {
        let value = self.series.get(series);
        *value.unwrap_or_else(|| panic!("no {series} among {:#?}", self.series))
    }

    pub(crate) fn has(&self, series: &str) -> bool {
        self.series.contains_key(series)
    }

    /// Returns the names of all metrics.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.types.keys().map(String::as_str)
    }

    /// Returns all pairs of label and value.
    pub(crate) fn labels(&self) -> &BTreeSet<(String, String)> {
        &self.labels
    }

    /// Returns all series with their values.
    pub(crate) fn series(&self) -> &BTreeMap<String, f64> {
        &self.series
    }
}

fn is_name(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_:".contains(letter);
    !name.is_empty()
        && name.chars().all(is_letter)
        && !name.starts_with(|c: char| c.is_ascii_digit())
}
