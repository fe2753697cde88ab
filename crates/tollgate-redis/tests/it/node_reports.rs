//! Node reports: published once, readable by all nodes, expired in time.

use std::time::Duration;

use tollgate::Timestamp;
use tollgate_redis::{
    Directory, NodeRecord, OutgoingFigures, OutgoingReport, REPORT_HISTORY, ReportId, Scripting,
};
use tollgate_testkit::server::Flavor;

use crate::fixture::{block_on, builder, builder_at, prefix, shared, shared_cluster};

const LIFETIME: Duration = Duration::from_secs(10);

fn directory(flavor: Flavor) -> Directory {
    builder(shared(flavor)).prefix(prefix()).unwrap().build().directory()
}

fn report(directory: &Directory, node: &str, figures: &str) -> Timestamp {
    report_numbered(directory, node, figures, figures.parse().unwrap())
}

fn report_numbered(directory: &Directory, node: &str, figures: &str, number: u64) -> Timestamp {
    let state = &format!("{node} after {figures}");
    let (id, address) = (node.to_owned(), "host:1".to_owned());
    let node = &NodeRecord { id, address, registered_at: Timestamp::EPOCH };
    let figures =
        Some(OutgoingFigures { number, figures, history: &[], state, state_lifetime: LIFETIME });
    block_on(directory.report(&OutgoingReport { node, lifetime: LIFETIME, events: &[], figures }))
        .unwrap()
        .at
}

fn reports_after(directory: &Directory, after: &ReportId) -> Vec<(String, String)> {
    let page = block_on(directory.node_reports(after)).unwrap();
    page.reports.into_iter().map(|report| (report.node, report.figures)).collect()
}

#[test]
fn reports_are_read_once_and_in_order() {
    for flavor in [Flavor::Redis, Flavor::Valkey] {
        let directory = directory(flavor);
        let start = report(&directory, "web-1", "1");
        report(&directory, "web 2 {x}", "2");
        let first = block_on(directory.node_reports(&ReportId::before(start))).unwrap().reports;
        assert_eq!(first.iter().map(|report| &*report.figures).collect::<Vec<_>>(), ["1", "2"]);
        let last = &first[1].id;
        // Ids have whole milliseconds.
        let start_millisecond = Timestamp::from_micros(start.as_micros() / 1000 * 1000);
        assert!(last.time() >= start_millisecond);
        assert_eq!(reports_after(&directory, last), []);
        report(&directory, "web-1", "3");
        assert_eq!(reports_after(&directory, last), [("web-1".to_owned(), "3".to_owned())]);
    }
}

#[test]
fn node_state_is_the_latest() {
    let directory = directory(Flavor::Redis);
    report(&directory, "a", "1");
    report(&directory, "a", "2");
    let states = block_on(directory.node_states(&["b", "a"])).unwrap();
    assert_eq!(states, [None, Some("a after 2".to_owned())]);
    assert_eq!(block_on(directory.node_states(&[])).unwrap(), []);
}

#[test]
fn repeated_report_counts_once() {
    for scripting in [Scripting::Script, Scripting::Function] {
        let store = builder(shared(Flavor::Redis)).prefix(prefix()).unwrap();
        let directory = store.scripting(scripting).build().directory();
        let start = report_numbered(&directory, "a", "one", 7);
        report_numbered(&directory, "a", "one", 7);
        report_numbered(&directory, "b", "another's", 7);
        report_numbered(&directory, "a", "two", 8);
        let reports = reports_after(&directory, &ReportId::before(start));
        let figures: Vec<&str> = reports.iter().map(|(_, figures)| &**figures).collect();
        assert_eq!(figures, ["one", "another's", "two"]);
    }
}

#[test]
fn reports_from_a_future_clock_are_removed() {
    let prefix = prefix();
    let store = builder(shared(Flavor::Redis)).prefix(prefix.clone()).unwrap().build();
    let (directory, mut raw) = (store.directory(), shared(Flavor::Redis).raw());
    let stream = format!("{prefix}reports{{{prefix}nodes}}");
    raw.call(&["XADD", &stream, "9999999999999-0", "node", "a", "figures", "0"]);
    let start = report(&directory, "a", "1");
    report(&directory, "a", "2");
    assert_eq!(reports_after(&directory, &ReportId::before(start)).len(), 2);
    assert_eq!(raw.call(&["XLEN", &stream]).int(), 2);
}

#[test]
fn unreadable_reports_are_skipped() {
    let prefix = prefix();
    let store = builder(shared(Flavor::Redis)).prefix(prefix.clone()).unwrap().build();
    let (directory, mut raw) = (store.directory(), shared(Flavor::Redis).raw());
    let start = report(&directory, "a", "1");
    for _ in 0..1200 {
        raw.call(&["XADD", &format!("{prefix}reports{{{prefix}nodes}}"), "*", "later", "version"]);
    }
    report(&directory, "a", "2");
    let first = block_on(directory.node_reports(&ReportId::before(start))).unwrap();
    assert_eq!(first.reports.len(), 1);
    assert_eq!(reports_after(&directory, &first.last.unwrap()).len(), 1);
}

#[test]
fn cluster_stores_reports_in_one_slot() {
    let cluster = shared_cluster(Flavor::Redis).url();
    let directory = builder_at(&cluster).prefix(prefix()).unwrap().build().directory();
    let start = report(&directory, "a", "1");
    report(&directory, "b", "2");
    assert_eq!(reports_after(&directory, &ReportId::before(start)).len(), 2);
    let states = block_on(directory.node_states(&["a", "b"])).unwrap();
    assert_eq!(states.iter().flatten().count(), 2);
}

#[test]
fn more_reports_than_a_page_are_read_in_pages() {
    let directory = directory(Flavor::Redis);
    let start = report(&directory, "a", "0");
    for number in 1..1100 {
        report(&directory, "a", &number.to_string());
    }
    let mut after = ReportId::before(start);
    let mut seen = 0;
    loop {
        let page = block_on(directory.node_reports(&after)).unwrap();
        let Some(last) = page.last else { break };
        after = last;
        for report in &page.reports {
            assert_eq!(report.figures, seen.to_string());
            seen += 1;
        }
    }
    assert_eq!(seen, 1100);
}

#[test]
fn reports_and_states_expire() {
    for scripting in [Scripting::Script, Scripting::Function] {
        let prefix = prefix();
        let store = builder(shared(Flavor::Redis)).prefix(prefix.clone()).unwrap();
        let directory = store.scripting(scripting).build().directory();
        report(&directory, "a", "1");
        let mut raw = shared(Flavor::Redis).raw();
        let mut ttl = |key: &str, rest: &str| {
            raw.call(&["PTTL", &format!("{prefix}{key}{{{prefix}nodes}}{rest}")]).int()
        };
        let (reports, state) = (ttl("reports", ""), ttl("node", ":a"));
        let history = i64::try_from(REPORT_HISTORY.as_millis()).unwrap();
        assert!((1..=history).contains(&reports), "{reports}");
        assert!((1..=10_000).contains(&state), "{state}");
    }
}
