//! Fuzz target of log lines. `scripts/fuzz access_log` runs it for longer.

use tollgate::MAX_FACT_LENGTH;
use tollgate_testkit::fuzz::Target;

use super::{CostField, FactNames, Format, JsonFields, Payload};
use crate::wire::scalar::MAX_INTEGER;

const WORDS: [&str; 46] = [
    "192.0.2.7",
    "2001:db8::1",
    " - - [",
    "] \"",
    "\" 200 ",
    "10/Oct/2026:13:55:36 +0200",
    "29/Feb/2023",
    "31/Dec/9999",
    "01/Jan/1970:00:00:00 +2359",
    "GET / HTTP/1.1",
    "\"-\"",
    "\\\"",
    "\"",
    "\\",
    "%2e%2e/",
    "%",
    "//",
    "/../",
    "?",
    "#",
    "{\"time\":",
    "\"ts\":",
    "\"msec\":1791633336.5",
    "\"ip\":\"::1\"",
    "\"path\":\"/a\"",
    "\"request\":\"GET /a HTTP/1.1\"",
    "\"bytes\":",
    "\"http_x_forwarded_for\":\"203.0.113.7, 10.0.0.1\"",
    "\"user\":7",
    "\"method\":\"GET\"",
    "1e400",
    "-1",
    "1e15",
    "0.1",
    "null",
    "[[",
    "{}",
    ",",
    ":",
    "2026-10-10T11:55:36Z",
    "1969-12-31",
    "T24:00:00",
    "\u{e9}",
    "\u{0}",
    "99999999999",
    "100000000000000",
];

#[test]
fn fuzz_access_log() {
    let costs =
        [CostField::parse("bytes=size").unwrap(), CostField::parse("tokens=bytes").unwrap()];
    let cost_names: Vec<String> = costs.iter().map(CostField::name).collect();
    let more = ["user", "host", "header:user-agent"].into_iter();
    let names = FactNames::new(more.chain(cost_names.iter().map(String::as_str))).unwrap();
    let fields = JsonFields::new(names.clone(), &[], &costs);
    let (mut payload, mut counts) = (Payload::default(), [0, 0]);
    let summary = Target::new("access_log", 10_000).dictionary(&WORDS).run(|line| {
        let format = Format::of_line(line);
        let parsed = format.parse(line, &fields, &mut payload);
        counts[usize::from(parsed.is_ok())] += 1;
        let facts = parsed.map(|at| (at, payload.bytes().to_vec()));
        let facts_with_space = {
            let line = [line, b" \r"].concat();
            format.parse(&line, &fields, &mut payload).map(|at| (at, payload.bytes().to_vec()))
        };
        if facts.is_ok() {
            assert_eq!(facts_with_space, facts, "with the end of line of Windows");
        }
        facts.map(|(at, facts)| check(at, &facts, &names))
    });
    assert!(summary.outcomes > 20, "{summary:?}");
    assert!(counts.iter().all(|count| *count > 10), "refused and accepted: {counts:?}");
}

/// Checks the facts of a line, and returns which it has.
fn check(at: u64, facts: &[u8], names: &FactNames) -> Vec<u8> {
    assert!(at <= MAX_INTEGER, "{at}");
    let facts: Vec<(u8, &[u8])> = Payload::decode(facts).collect();
    for (index, value) in &facts {
        let name = names.get(*index).unwrap();
        assert!((1..=MAX_FACT_LENGTH).contains(&value.len()), "{name}");
        if super::unit_of_cost(name).is_some() {
            let amount: u64 = std::str::from_utf8(value).unwrap().parse().unwrap();
            assert!(amount <= MAX_INTEGER, "{amount}");
        }
    }
    let path = facts.iter().find(|(index, _)| *index == FactNames::PATH).unwrap().1;
    // `*` is the target of `OPTIONS *`.
    let is_path = path == b"*" || path.starts_with(b"/");
    assert!(is_path && !path.contains(&b'?'), "{path:?}");
    assert!(facts.iter().any(|(index, _)| *index == FactNames::IP));
    let mut indexes: Vec<u8> = facts.into_iter().map(|(index, _)| index).collect();
    indexes.sort_unstable();
    assert!(indexes.is_sorted_by(|one, next| one < next), "a fact twice: {indexes:?}");
    indexes
}
