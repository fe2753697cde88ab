//! Fields as a client reads them: structured ones by a parser of others, plain ones as integers.

use std::collections::HashMap;

use http::HeaderMap;
use sfv::{BareItem, Item, List, ListEntry, Parser};

/// A name and its parameters.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) name: String,
    parameters: HashMap<String, u64>,
}

impl Told {
    /// Its parameters, which are these and no others.
    pub(crate) fn numbers(&self, names: [&'static str; 2]) -> HashMap<&'static str, Option<u64>> {
        let is_known = |name: &String| names.contains(&name.as_str());
        assert!(self.parameters.keys().all(is_known), "{self:?}");
        names.map(|name| (name, self.parameters.get(name).copied())).into()
    }
}

impl From<&Item> for Told {
    fn from(item: &Item) -> Self {
        let BareItem::String(name) = &item.bare_item else { panic!("{item:?} is no string") };
        let number = |value: &BareItem| match value {
            BareItem::Integer(number) => u64::try_from(i64::from(*number)).unwrap(),
            other => panic!("{other:?} is no integer"),
        };
        let pairs = item.params.iter().map(|(key, value)| (key.as_str().to_owned(), number(value)));
        Self { name: name.as_str().to_owned(), parameters: pairs.collect() }
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    let mut lines = headers.get_all(name).iter();
    let line = lines.next().unwrap_or_else(|| panic!("no {name} in {headers:?}"));
    assert!(lines.next().is_none(), "{name} comes twice");
    line.to_str().unwrap()
}

fn listed(headers: &HeaderMap, name: &str) -> Vec<Told> {
    let list: List = Parser::new(text(headers, name)).parse().unwrap();
    let item = |entry: &ListEntry| match entry {
        ListEntry::Item(item) => Told::from(item),
        ListEntry::InnerList(_) => panic!("{entry:?} is no item"),
    };
    list.iter().map(item).collect()
}

/// What `RateLimit-Policy` lists.
pub(crate) fn policies(headers: &HeaderMap) -> Vec<Told> {
    listed(headers, "ratelimit-policy")
}

/// The one that `RateLimit` lists.
pub(crate) fn item(headers: &HeaderMap) -> Told {
    let mut told = listed(headers, "ratelimit");
    assert_eq!(told.len(), 1);
    told.remove(0)
}

/// A field that is a bare integer, in digits alone.
pub(crate) fn number(headers: &HeaderMap, name: &str) -> u64 {
    let text = text(headers, name);
    assert!(text.bytes().all(|byte| byte.is_ascii_digit()), "{text}");
    text.parse().unwrap()
}
