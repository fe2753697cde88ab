//! What nodes counted lately: told once, read by any, and forgotten in time.

use std::time::Duration;

use tollgate::Timestamp;
use tollgate_redis::{Directory, OutgoingReport, REPORT_HISTORY, ReportId, Scripting};
use tollgate_testkit::server::Flavor;

use crate::fixture::{block_on, patient, patient_at, prefix, shared, shared_cluster};

const LIFETIME: Duration = Duration::from_secs(10);

fn directory(flavor: Flavor) -> Directory {
    patient(shared(flavor)).prefix(prefix()).unwrap().build().directory()
}

fn beat(directory: &Directory, node: &str, figures: &str) -> Timestamp {
    numbered(directory, node, figures, figures.parse().unwrap())
}

fn numbered(directory: &Directory, node: &str, figures: &str, number: u64) -> Timestamp {
    let state = &format!("{node} after {figures}");
    block_on(directory.report(&OutgoingReport { node, number, figures, state, lifetime: LIFETIME }))
        .unwrap()
}

fn told(directory: &Directory, after: &ReportId) -> Vec<(String, String)> {
    let page = block_on(directory.node_reports(after)).unwrap();
    page.reports.into_iter().map(|report| (report.node, report.figures)).collect()
}

#[test]
fn pulses_are_read_once_and_in_order_by_who_remembers_the_last() {
    for flavor in [Flavor::Redis, Flavor::Valkey] {
        let directory = directory(flavor);
        let start = beat(&directory, "web-1", "1");
        beat(&directory, "web 2 {x}", "2");
        let first = block_on(directory.node_reports(&ReportId::before(start))).unwrap().reports;
        assert_eq!(first.iter().map(|report| &*report.figures).collect::<Vec<_>>(), ["1", "2"]);
        let last = &first[1].id;
        assert!(last.time() >= start);
        assert_eq!(told(&directory, last), []);
        beat(&directory, "web-1", "3");
        assert_eq!(told(&directory, last), [("web-1".to_owned(), "3".to_owned())]);
    }
}

#[test]
fn a_node_fares_as_it_last_said() {
    let directory = directory(Flavor::Redis);
    beat(&directory, "a", "1");
    beat(&directory, "a", "2");
    let states = block_on(directory.node_states(&["b", "a"])).unwrap();
    assert_eq!(states, [None, Some("a after 2".to_owned())]);
    assert_eq!(block_on(directory.node_states(&[])).unwrap(), []);
}

#[test]
fn a_beat_that_is_told_twice_counts_once() {
    for scripting in [Scripting::Script, Scripting::Function] {
        let store = patient(shared(Flavor::Redis)).prefix(prefix()).unwrap();
        let directory = store.scripting(scripting).build().directory();
        let start = numbered(&directory, "a", "one", 7);
        numbered(&directory, "a", "one", 7);
        numbered(&directory, "b", "another's", 7);
        numbered(&directory, "a", "two", 8);
        let told = told(&directory, &ReportId::before(start));
        let told: Vec<&str> = told.iter().map(|(_, pulse)| &**pulse).collect();
        assert_eq!(told, ["one", "another's", "two"]);
    }
}

#[test]
fn a_clock_that_was_ahead_leaves_nothing_behind() {
    let prefix = prefix();
    let store = patient(shared(Flavor::Redis)).prefix(prefix.clone()).unwrap().build();
    let (directory, mut raw) = (store.directory(), shared(Flavor::Redis).raw());
    let stream = format!("{prefix}reports");
    raw.call(&["XADD", &stream, "9999999999999-0", "node", "a", "figures", "0"]);
    let start = beat(&directory, "a", "1");
    beat(&directory, "a", "2");
    assert_eq!(told(&directory, &ReportId::before(start)).len(), 2);
    assert_eq!(raw.call(&["XLEN", &stream]).int(), 2);
}

#[test]
fn what_cannot_be_read_is_passed_over() {
    let prefix = prefix();
    let store = patient(shared(Flavor::Redis)).prefix(prefix.clone()).unwrap().build();
    let (directory, mut raw) = (store.directory(), shared(Flavor::Redis).raw());
    let start = beat(&directory, "a", "1");
    for _ in 0..1200 {
        raw.call(&["XADD", &format!("{prefix}reports"), "*", "later", "version"]);
    }
    beat(&directory, "a", "2");
    let first = block_on(directory.node_reports(&ReportId::before(start))).unwrap();
    assert_eq!(first.reports.len(), 1);
    assert_eq!(told(&directory, &first.last.unwrap()).len(), 1);
}

#[test]
fn a_cluster_keeps_them_in_one_slot() {
    let cluster = shared_cluster(Flavor::Redis).url();
    let directory = patient_at(&cluster).prefix(prefix()).unwrap().build().directory();
    let start = beat(&directory, "a", "1");
    beat(&directory, "b", "2");
    assert_eq!(told(&directory, &ReportId::before(start)).len(), 2);
    let states = block_on(directory.node_states(&["a", "b"])).unwrap();
    assert_eq!(states.iter().flatten().count(), 2);
}

#[test]
fn more_pulses_than_come_at_once_follow() {
    let directory = directory(Flavor::Redis);
    let start = beat(&directory, "a", "0");
    for number in 1..1100 {
        beat(&directory, "a", &number.to_string());
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
fn what_is_told_expires() {
    for scripting in [Scripting::Script, Scripting::Function] {
        let prefix = prefix();
        let store = patient(shared(Flavor::Redis)).prefix(prefix.clone()).unwrap();
        let directory = store.scripting(scripting).build().directory();
        beat(&directory, "a", "1");
        let mut raw = shared(Flavor::Redis).raw();
        let mut lives = |key: &str| raw.call(&["PTTL", &format!("{prefix}{key}")]).int();
        let (reports, state) = (lives("reports"), lives(&format!("node{{{prefix}reports}}:a")));
        let history = i64::try_from(REPORT_HISTORY.as_millis()).unwrap();
        assert!((1..=history).contains(&reports), "{reports}");
        assert!((1..=10_000).contains(&state), "{state}");
    }
}
