//! Descriptors: their facts contain every entry, and the rules that match are those of a simple model.

use tollgate::{Facts, MAX_DESCRIPTOR_LENGTH, Policy, Request};
use tollgate_testkit::fuzz::Target;

use crate::helpers::rules;

/// Rules by name, with the pattern of `descriptor`.
const PATTERNS: [(&str, &str); 6] = [
    ("exact", "path=%2Fapi/user=bob"),
    ("user", "path=%2Fapi*/user=*"),
    ("middle", "a=*x*y*"),
    ("suffix", "*=z"),
    ("first", "path=*"),
    ("any", "*"),
];

const WORDS: [&str; 18] = [
    "path\t",
    "user\t",
    "a\t",
    "/api",
    "bob",
    "%2F",
    "%",
    "*",
    "=",
    "/",
    "\n",
    "\t",
    "x",
    "xy",
    "z",
    "é",
    "\n\t",
    "message_type\tmarketing",
];

#[test]
fn fuzz_descriptor() {
    let rule = |(name, pattern): (&str, &str)| {
        format!(
            "- {{ name: {name}, match: {{ facts: {{ descriptor: '{pattern}' }} }}, per: [descriptor, 'entry:a'], limits: [1/s] }}\n"
        )
    };
    let policies = PATTERNS.map(|pattern| rules(&rule(pattern)));
    let all = rules(&PATTERNS.map(rule).concat());
    let summary = Target::new("descriptor", 4000).dictionary(&WORDS).run(|input| {
        let text = String::from_utf8_lossy(input);
        let (domain, entries) = entries(&text);
        let Ok(facts) = Facts::of_descriptor(domain, entries.iter().copied(), 3) else {
            check_refused(domain, &entries);
            return Vec::new();
        };
        check_facts(&facts, &entries);
        let request = Request::new(facts.clone()).without_default_limit();
        let descriptor = std::str::from_utf8(facts.get("descriptor").unwrap()).unwrap();
        let expected = PATTERNS.map(|(_, pattern)| matches(pattern, descriptor));
        let found = policies.each_ref().map(|policy| is_matched(policy, &request));
        assert_eq!(found, expected, "{descriptor}");
        let first = expected.iter().position(|is_match| *is_match).map(|at| PATTERNS[at].0);
        let planned = all.plan(&request);
        assert_eq!(planned.matched().first().map(|matched| matched.rule().name()), first);
        expected.to_vec()
    });
    assert!(summary.outcomes > 5, "{summary:?}");
}

/// Reads the domain from the first line, and an entry from each other line: key and value, separated by a tab.
fn entries(text: &str) -> (&str, Vec<(&str, &str)>) {
    let mut lines = text.split('\n');
    let domain = lines.next().unwrap_or_default();
    (domain, lines.map(|line| line.split_once('\t').unwrap_or((line, ""))).collect())
}

/// Only documented reasons refuse a descriptor.
fn check_refused(domain: &str, entries: &[(&str, &str)]) {
    let length = entries.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
    let mut keys: Vec<_> = entries.iter().map(|(key, _)| key).collect();
    keys.sort_unstable();
    keys.dedup();
    assert!(
        domain.is_empty()
            || entries.is_empty()
            || keys.len() > 29
            || domain.len() + length > MAX_DESCRIPTOR_LENGTH
    );
}

fn check_facts(facts: &Facts<'_>, entries: &[(&str, &str)]) {
    let descriptor = facts.get("descriptor").unwrap().to_vec();
    let decoded: Vec<_> = descriptor
        .split(|byte| *byte == b'/')
        .map(|entry| {
            let equals = entry.iter().position(|byte| *byte == b'=').unwrap();
            (unescape(&entry[..equals]), unescape(&entry[equals + 1..]))
        })
        .collect();
    let expected: Vec<_> = entries
        .iter()
        .map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec()))
        .collect();
    assert_eq!(decoded, expected);
    for (key, _) in
        entries.iter().filter(|(key, _)| key.bytes().all(|byte| byte.is_ascii_lowercase()))
    {
        let first =
            entries.iter().find(|(other, _)| other == key).map(|(_, value)| value.as_bytes());
        if key.len() <= 58 {
            assert_eq!(facts.get(&format!("entry:{key}")), first, "{key}");
        }
    }
}

fn unescape(text: &[u8]) -> Vec<u8> {
    let mut bytes = text.iter();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'%' => {
                let digits = [*bytes.next().unwrap(), *bytes.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            byte => *byte,
        });
    }
    plain
}

fn is_matched(policy: &Policy, request: &Request<'_>) -> bool {
    let names = policy.plan(request).matched().len();
    assert_eq!(names, policy.explain(request).matched().count(), "the index and the trace agree");
    names > 0
}

/// Matches a pattern whose `*` stands for any text within one entry.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    text.strip_prefix(first).is_some_and(|text| {
        let end = text.find('/').unwrap_or(text.len());
        (0..=end).any(|at| matches(rest, &text[at..]))
    })
}
