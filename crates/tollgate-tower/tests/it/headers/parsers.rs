//! Header parsing as in a client: structured fields by `sfv`, plain ones as integers.

use std::collections::HashMap;

use http::HeaderMap;
use sfv::{BareItem, Item, List, ListEntry, Parser};

/// An item: a name and its integer parameters.
#[derive(Debug)]
pub(crate) struct ParsedItem {
    pub(crate) name: String,
    parameters: HashMap<String, u64>,
}

impl ParsedItem {
    /// Returns these parameters; panics if there are others.
    pub(crate) fn numbers(&self, names: [&'static str; 2]) -> HashMap<&'static str, Option<u64>> {
        let is_known = |name: &String| names.contains(&name.as_str());
        assert!(self.parameters.keys().all(is_known), "{self:?}");
        names.map(|name| (name, self.parameters.get(name).copied())).into()
    }
}

impl From<&Item> for ParsedItem {
    fn from(item: &Item) -> Self {
        let BareItem::String(name) = &item.bare_item else { panic!("{item:?} is not a string") };
        let number = |value: &BareItem| match value {
            BareItem::Integer(number) => u64::try_from(i64::from(*number)).unwrap(),
            other => panic!("{other:?} is not an integer"),
        };
        let pairs = item.params.iter().map(|(key, value)| (key.as_str().to_owned(), number(value)));
        Self { name: name.as_str().to_owned(), parameters: pairs.collect() }
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    let mut lines = headers.get_all(name).iter();
    let line = lines.next().unwrap_or_else(|| panic!("no {name} in {headers:?}"));
    assert!(lines.next().is_none(), "{name} occurs twice");
    line.to_str().unwrap()
}

fn parse_list(headers: &HeaderMap, name: &str) -> Vec<ParsedItem> {
    let list: List = Parser::new(text(headers, name)).parse().unwrap();
    let item = |entry: &ListEntry| match entry {
        ListEntry::Item(item) => ParsedItem::from(item),
        ListEntry::InnerList(_) => panic!("{entry:?} is not an item"),
    };
    list.iter().map(item).collect()
}

/// Parses `RateLimit-Policy`.
pub(crate) fn policies(headers: &HeaderMap) -> Vec<ParsedItem> {
    parse_list(headers, "ratelimit-policy")
}

/// Parses `RateLimit`, which must have one item.
pub(crate) fn item(headers: &HeaderMap) -> ParsedItem {
    let mut items = parse_list(headers, "ratelimit");
    assert_eq!(items.len(), 1);
    items.remove(0)
}

/// Parses a field that consists of decimal digits.
pub(crate) fn number(headers: &HeaderMap, name: &str) -> u64 {
    let text = text(headers, name);
    assert!(text.bytes().all(|byte| byte.is_ascii_digit()), "{text}");
    text.parse().unwrap()
}

/// Parses a time as Go's `time.ParseDuration` does, to seconds.
pub(crate) fn go_duration(headers: &HeaderMap, name: &str) -> u64 {
    let (mut seconds, mut rest) = (0, text(headers, name));
    assert!(!rest.is_empty());
    while !rest.is_empty() {
        let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap();
        let (number, after) = rest.split_at(digits);
        let (unit, after) = after.split_at(1);
        let factor = match unit {
            "h" => 3600,
            "m" => 60,
            "s" => 1,
            _ => panic!("unknown unit {unit:?}"),
        };
        seconds += number.parse::<u64>().unwrap() * factor;
        rest = after;
    }
    seconds
}
