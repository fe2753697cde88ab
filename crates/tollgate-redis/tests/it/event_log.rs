//! The event log and the history: nothing twice, nothing lost, and bounded.

use std::time::Duration;

use tollgate::Timestamp;
use tollgate_redis::{
    Directory, EVENT_HISTORY, LoggedEvent, MAX_EVENTS, NodeRecord, OutgoingEvent, OutgoingFigures,
    OutgoingInterval, OutgoingReport, ReportReply, Scripting,
};
use tollgate_testkit::server::{Flavor, Raw};

use crate::fixture::{block_on, builder, builder_at, prefix, shared, shared_cluster};

const HOUR: Duration = Duration::from_secs(3600);
const TEN_SECONDS: Duration = Duration::from_secs(10);

/// A directory with a key prefix of its own, and a connection to its server.
struct Fixture {
    directory: Directory,
    prefix: String,
    raw: Raw,
}

impl Fixture {
    fn new(flavor: Flavor, scripting: Scripting) -> Self {
        let prefix = prefix();
        let store = builder(shared(flavor)).prefix(prefix.clone()).unwrap().scripting(scripting);
        Self { directory: store.build().directory(), prefix, raw: shared(flavor).raw() }
    }

    fn key(&self, name: &str) -> String {
        format!("{0}{name}{{{0}nodes}}", self.prefix)
    }

    /// Makes the last report of a node seem older.
    fn age(&mut self, node: &str, by: Duration) {
        let (nodes, seen) = (format!("{}nodes", self.prefix), self.key("seen"));
        let record = self.raw.call(&["HGET", &nodes, node]).bytes().to_vec();
        let mut bytes = [0; 8];
        bytes[1..].copy_from_slice(&record[..7]);
        let time = u64::from_be_bytes(bytes) - u64::try_from(by.as_micros()).unwrap();
        let record = [&time.to_be_bytes()[1..], &record[7..]].concat();
        self.raw.call(&[b"HSET", nodes.as_bytes(), node.as_bytes(), &record]);
        self.raw.call(&["ZADD", &seen, "XX", &time.to_string(), node]);
    }

    fn end_grace(&mut self) {
        let key = self.key("grace");
        self.raw.call(&["DEL", &key]);
    }

    fn memory(&mut self, key: &str) -> i64 {
        self.raw.call(&["MEMORY", "USAGE", key, "SAMPLES", "0"]).int()
    }
}

fn record(id: &str) -> NodeRecord {
    let address = format!("{id}.example:80");
    NodeRecord { id: id.to_owned(), address, registered_at: Timestamp::EPOCH }
}

fn report(directory: &Directory, node: &str, events: &[OutgoingEvent<'_>]) -> ReportReply {
    let node = &record(node);
    let report = OutgoingReport { node, lifetime: HOUR, events, figures: None };
    block_on(directory.report(&report)).unwrap()
}

/// Returns all events since an hour.
fn events(directory: &Directory) -> Vec<LoggedEvent> {
    block_on(directory.event_log(Timestamp::EPOCH, None, MAX_EVENTS)).unwrap()
}

fn kinds(directory: &Directory) -> Vec<(String, String)> {
    events(directory).into_iter().map(|event| (event.kind, event.node)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(kind, node)| ((*kind).to_owned(), (*node).to_owned())).collect()
}

#[test]
fn repeated_event_is_added_once_with_its_own_time() {
    for scripting in [Scripting::Script, Scripting::Function] {
        let Fixture { directory, .. } = Fixture::new(Flavor::Redis, scripting);
        let age = Duration::from_secs(90);
        let lost = OutgoingEvent { number: 7, age, kind: "store_lost", detail: "a\tb\nc" };
        let first = report(&directory, "a", &[lost]);
        let second = report(&directory, "a", &[lost]);
        assert_eq!((first.events, second.events), (1, 1));
        let back = OutgoingEvent { number: 8, age: Duration::ZERO, kind: "store_back", detail: "" };
        assert_eq!(report(&directory, "a", &[back]).events, 2);
        let log = events(&directory);
        let [newest, oldest] = &log[..] else { panic!("{log:?}") };
        assert_eq!(
            (&*newest.kind, &*oldest.kind, &*oldest.node),
            ("store_back", "store_lost", "a")
        );
        assert_eq!(oldest.detail, "a\tb\nc");
        assert_eq!(oldest.at, first.at - age);
        let none = block_on(directory.event_log(first.at, Some(&newest.cursor), 9)).unwrap();
        assert_eq!(none, [], "older events are not read");
    }
}

#[test]
fn event_pages_contain_each_event_once() {
    let mut fixture = Fixture::new(Flavor::Redis, Scripting::Script);
    let key = fixture.key("eventlog");
    for (number, time) in [5, 5, 5, 5, 6, 7, 7, 4].iter().enumerate() {
        fixture.raw.call(&["ZADD", &key, &time.to_string(), &format!("k\tn\t{number}\t{number}")]);
    }
    fixture.raw.call(&["ZADD", &key, "8", "of another program"]);
    let (mut cursor, mut seen) = (None, Vec::new());
    loop {
        let page = fixture.directory.event_log(Timestamp::EPOCH, cursor.as_deref(), 3);
        let page = block_on(page).unwrap();
        let Some(last) = page.last() else { break };
        cursor = Some(last.cursor.clone());
        seen.extend(page.into_iter().map(|event| event.detail));
    }
    assert_eq!(seen, ["6", "5", "4", "3", "2", "1", "0", "7"]);
    for cursor in ["", "1", "x-1", "1-"] {
        assert!(block_on(fixture.directory.event_log(Timestamp::EPOCH, Some(cursor), 3)).is_err());
    }
}

#[test]
fn silent_node_has_one_event_whoever_reports() {
    for (flavor, scripting) in
        [(Flavor::Redis, Scripting::Function), (Flavor::Valkey, Scripting::Script)]
    {
        let mut fixture = Fixture::new(flavor, scripting);
        let directory = fixture.directory.clone();
        for node in ["a", "b", "c"] {
            report(&directory, node, &[]);
        }
        fixture.age("b", Duration::from_secs(6));
        report(&directory, "a", &[]);
        assert_eq!(events(&directory), [], "{flavor}: the nodes are not watched for 5 s yet");
        fixture.end_grace();
        for node in ["a", "c", "a", "c"] {
            report(&directory, node, &[]);
        }
        assert_eq!(kinds(&directory), pairs(&[("node_silent", "b")]), "{flavor}");
        let detail = "no report for 6 s from b.example:80";
        assert_eq!(events(&directory)[0].detail, detail);
        report(&directory, "b", &[]);
        report(&directory, "b", &[]);
        let expected = pairs(&[("node_back", "b"), ("node_silent", "b")]);
        assert_eq!(kinds(&directory), expected, "{flavor}");
        assert_eq!(events(&directory)[0].detail, "reports again after 6 s");
        block_on(directory.leave(&record("c"))).unwrap();
        fixture.end_grace();
        report(&directory, "a", &[]);
        let expected = pairs(&[("node_left", "c"), ("node_back", "b"), ("node_silent", "b")]);
        assert_eq!(kinds(&directory), expected, "{flavor}: a node that left is not silent");
    }
}

#[test]
fn outage_of_redis_makes_no_node_silent() {
    let mut fixture = Fixture::new(Flavor::Redis, Scripting::Function);
    let directory = fixture.directory.clone();
    for node in ["a", "b"] {
        report(&directory, node, &[]);
    }
    fixture.end_grace();
    for node in ["a", "b"] {
        fixture.age(node, Duration::from_secs(60));
    }
    for node in ["a", "b", "a"] {
        report(&directory, node, &[]);
    }
    assert_eq!(events(&directory), []);
}

#[test]
fn event_log_is_bounded_in_number_and_time() {
    let mut fixture = Fixture::new(Flavor::Redis, Scripting::Function);
    let directory = fixture.directory.clone();
    let old = EVENT_HISTORY + Duration::from_secs(60);
    let detail = "x".repeat(100);
    report(&directory, "a", &[OutgoingEvent { number: 0, age: old, kind: "old", detail: &detail }]);
    assert_eq!(events(&directory), []);
    for hundred in 0..=100 {
        let events: Vec<OutgoingEvent<'_>> = (1..=100)
            .map(|number| {
                let number = hundred * 100 + number;
                OutgoingEvent { number, age: Duration::ZERO, kind: "store_lost", detail: &detail }
            })
            .collect();
        report(&directory, "web-1", &events);
    }
    assert_eq!(events(&directory).len(), MAX_EVENTS);
    let key = fixture.key("eventlog");
    let bytes = fixture.memory(&key);
    println!("{MAX_EVENTS} events of 100 bytes take {bytes} bytes");
    assert!(bytes < 4_000_000, "{bytes}");
    assert!(fixture.raw.call(&["PTTL", &key]).int() > 0);
}

/// Sends figures with this number and these counts of one interval.
fn send(directory: &Directory, node: &str, number: u64, counts: &[(&str, &[u64])]) {
    let counts = counts.iter().map(|(name, counts)| ((*name).to_owned(), counts.to_vec()));
    let interval = OutgoingInterval {
        length: TEN_SECONDS,
        start: Timestamp::from_micros(10_000_000),
        keep: HOUR,
        counts: counts.collect(),
    };
    let figures = OutgoingFigures {
        number,
        figures: "{}",
        history: &[interval],
        state: "ok",
        state_lifetime: Duration::from_millis(1),
    };
    let node = &record(node);
    let report = OutgoingReport { node, lifetime: HOUR, events: &[], figures: Some(figures) };
    block_on(directory.report(&report)).unwrap();
}

fn history(directory: &Directory) -> Vec<(String, Vec<u64>)> {
    let starts = [10, 20].map(|second| Timestamp::from_micros(second * 1_000_000));
    let mut intervals = block_on(directory.history(TEN_SECONDS, &starts)).unwrap();
    assert_eq!(intervals.pop().unwrap().counts, [], "the second interval is empty");
    let mut counts = intervals.pop().unwrap().counts;
    counts.sort();
    counts
}

/// The state of a node, which had the number of its last report, expires during an outage.
#[test]
fn counts_of_a_report_sent_again_after_a_long_outage_count_once() {
    for scripting in [Scripting::Script, Scripting::Function] {
        let mut fixture = Fixture::new(Flavor::Redis, scripting);
        let directory = fixture.directory.clone();
        send(&directory, "a", 7, &[("", &[2, 1, 0, 0]), ("api", &[3, 1, 0, 0, 0])]);
        let state = fixture.key("node") + ":a";
        fixture.raw.call(&["DEL", &state]);
        send(&directory, "a", 7, &[("", &[2, 1, 0, 0]), ("api", &[3, 1, 0, 0, 0])]);
        send(&directory, "b", 7, &[("", &[9_007_199_254_740_000, 0, 0, 0])]);
        send(&directory, "a", 8, &[("api", &[1, 1, 0, 2, 0])]);
        let expected = [("", vec![9_007_199_254_740_002, 1, 0, 0]), ("api", vec![4, 2, 0, 2, 0])];
        assert_eq!(history(&directory), expected.map(|(name, counts)| (name.to_owned(), counts)));
        let reports = fixture.key("reports");
        assert_eq!(fixture.raw.call(&["XLEN", &reports]).int(), 3);
    }
}

#[test]
fn interval_of_the_history_is_bounded_without_losing_counts() {
    let mut fixture = Fixture::new(Flavor::Redis, Scripting::Function);
    let directory = fixture.directory.clone();
    for number in 0..10 {
        let names: Vec<String> = (0..32)
            .map(|rule| format!("a-rule-with-a-long-name-{:03}", number * 32 + rule))
            .collect();
        let counts: &[u64] = &[123_456, 65_432, 0, 0, 0];
        let counts: Vec<(&str, &[u64])> = names.iter().map(|name| (&**name, counts)).collect();
        send(&directory, "a", number + 1, &counts);
    }
    let counts = history(&directory);
    assert_eq!(counts.len(), 64);
    assert_eq!(counts.iter().map(|(_, counts)| counts[0]).sum::<u64>(), 320 * 123_456);
    let key = fixture.key("history") + ":10:10";
    let bytes = fixture.memory(&key);
    println!("an interval of 64 names takes {bytes} bytes");
    assert!(bytes < 6000, "{bytes}");
    assert!(fixture.raw.call(&["PTTL", &key]).int() > 0);
}

#[test]
fn cluster_stores_events_and_history_in_one_slot() {
    let cluster = shared_cluster(Flavor::Redis).url();
    let directory = builder_at(&cluster).prefix(prefix()).unwrap().build().directory();
    let event = OutgoingEvent { number: 1, age: Duration::ZERO, kind: "store_lost", detail: "x" };
    assert_eq!(report(&directory, "a", &[event]).events, 1);
    send(&directory, "a", 1, &[("api", &[1, 1, 0, 0, 0])]);
    assert_eq!(history(&directory), [("api".to_owned(), vec![1, 1, 0, 0, 0])]);
    block_on(directory.leave(&record("a"))).unwrap();
    assert_eq!(kinds(&directory), pairs(&[("node_left", "a"), ("store_lost", "a")]));
}
