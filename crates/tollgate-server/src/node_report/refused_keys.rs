//! The keys that were refused most of late, in memory that does not grow with their number.
//!
//! Each minute has a table of so many keys. When one more finds it full, every count in it goes down by one and what
//! comes to nothing is dropped (Misra and Gries): a key with more than its share of the refusals is never lost, and
//! a count is at most as many too low as each key of the table could have had.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tollgate::{Clock, Outcome, Query, Subject, SystemClock, Timestamp};

/// How many minutes are remembered.
const MINUTES: usize = 5;
const MINUTE: u64 = 60_000_000;
/// Keys are spread over so many tables, each under its own lock.
const SHARDS: usize = 4;
/// The most keys of one table, and the most that are told.
const MOST_KEYS: usize = 128;
const MOST_TOLD: usize = 20;
/// How long a key with its facts may be, as JSON: the facts of longer ones are not told, and longer keys are cut.
const LONGEST: usize = 4096;
/// The facts that are told. Others may be secret, as an API key is.
const TELLABLE: [&str; 8] = ["client", "user", "ip", "method", "path", "host", "tenant", "tier"];

/// A key that was refused, and by what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RefusedKey {
    pub(crate) key: String,
    pub(crate) tenant: String,
    pub(crate) rule: String,
    pub(crate) limit: String,
    /// At least so often.
    pub(crate) count: u64,
    /// In milliseconds since the epoch.
    pub(crate) last_at: u64,
    /// What was known of one such request.
    pub(crate) facts: Option<BTreeMap<String, String>>,
}

/// The keys refused of late.
#[derive(Debug)]
pub(crate) struct RefusedKeys {
    hasher: RandomState,
    clock: SystemClock,
    shards: [Mutex<VecDeque<Minute>>; SHARDS],
}

#[derive(Debug)]
struct Minute {
    number: u64,
    keys: HashTable<Refused>,
}

#[derive(Debug)]
struct Refused {
    hash: u64,
    subject: Box<str>,
    rule: Box<str>,
    limit: Box<str>,
    count: u64,
    last: Timestamp,
    facts: Option<BTreeMap<String, String>>,
}

impl RefusedKeys {
    pub(crate) fn new() -> Self {
        Self { hasher: RandomState::new(), clock: SystemClock::new(), shards: Default::default() }
    }

    /// Notes an outcome, if it is a refusal by a limit.
    pub(crate) fn note(&self, asked: &Query<'_>, outcome: &Outcome<'_, '_>) {
        let decision = outcome.decision;
        if decision.is_allowed() {
            return;
        }
        let Some(status) = decision.deciding() else { return };
        let scope = (status.limit().rule(), status.limit().name());
        let is_deciding = |limit: &tollgate::Limit| (limit.rule(), limit.name()) == scope;
        let take = outcome.plan.takes().iter().find(|take| is_deciding(take.key().limit()));
        let Some(take) = take else { return };
        self.add(take.key().subject(), scope, self.clock.now(), || facts_of(asked));
    }

    fn add(
        &self,
        subject: &str,
        (rule, limit): (&str, &str),
        at: Timestamp,
        facts: impl FnOnce() -> Option<BTreeMap<String, String>>,
    ) {
        let hash = self.hasher.hash_one((subject, rule, limit));
        let is_same = |kept: &Refused| {
            *kept.subject == *subject && *kept.rule == *rule && *kept.limit == *limit
        };
        let shard = usize::try_from(hash >> 32).unwrap_or_default() % SHARDS;
        let Some(shard) = self.shards.get(shard) else { return };
        let mut minutes = shard.lock();
        let Some(keys) = minute_of(&mut minutes, at) else { return };
        if let Some(kept) = keys.find_mut(hash, is_same) {
            (kept.count, kept.last) = (kept.count + 1, at.max(kept.last));
            return;
        }
        if keys.len() >= MOST_KEYS {
            keys.retain(|kept| {
                kept.count -= 1;
                kept.count > 0
            });
            return;
        }
        let [subject, rule, limit] = [subject, rule, limit].map(Box::from);
        let refused = Refused { hash, subject, rule, limit, count: 1, last: at, facts: facts() };
        keys.insert_unique(hash, refused, |kept| kept.hash);
    }

    /// Those refused most, the most refused first.
    pub(crate) fn top(&self) -> Vec<RefusedKey> {
        self.top_at(self.clock.now())
    }

    fn top_at(&self, now: Timestamp) -> Vec<RefusedKey> {
        let oldest = (now.as_micros() / MINUTE).saturating_sub(MINUTES as u64 - 1);
        most_refused(self.shards.iter().flat_map(|shard| {
            let mut minutes = shard.lock();
            minutes.retain(|minute| minute.number >= oldest);
            top_of(&minutes)
        }))
    }
}

/// The keys of the minute, newest first; older minutes are forgotten.
fn minute_of(minutes: &mut VecDeque<Minute>, at: Timestamp) -> Option<&mut HashTable<Refused>> {
    let number = at.as_micros() / MINUTE;
    // A clock that was put back far begins anew; one that trembles counts for the newest minute.
    if minutes.front().is_some_and(|newest| newest.number > number + 1) {
        minutes.clear();
    }
    if minutes.front().is_none_or(|newest| newest.number < number) {
        minutes.push_front(Minute { number, keys: HashTable::new() });
        minutes.truncate(MINUTES);
    }
    minutes.front_mut().map(|newest| &mut newest.keys)
}

fn top_of(minutes: &VecDeque<Minute>) -> Vec<RefusedKey> {
    let mut sums: HashMap<(&str, &str, &str), (u64, &Refused)> = HashMap::new();
    for minute in minutes {
        for kept in &minute.keys {
            let id = (&*kept.subject, &*kept.rule, &*kept.limit);
            // Minutes go from the newest to the oldest, so what is there was refused last.
            sums.entry(id).and_modify(|(sum, _)| *sum += kept.count).or_insert((kept.count, kept));
        }
    }
    let mut all: Vec<(u64, &Refused)> = sums.into_values().collect();
    all.sort_unstable_by_key(|(count, kept)| (std::cmp::Reverse(*count), &kept.subject));
    all.into_iter().take(MOST_TOLD).map(|(count, kept)| kept.told(count)).collect()
}

/// Of many lists, perhaps of several nodes, the most refused. What two of them name alike is one.
pub(crate) fn most_refused(lists: impl IntoIterator<Item = RefusedKey>) -> Vec<RefusedKey> {
    let mut sums: BTreeMap<(String, String, String, String), RefusedKey> = BTreeMap::new();
    for told in lists {
        let RefusedKey { key, tenant, rule, limit, .. } = &told;
        let id = (tenant.clone(), key.clone(), rule.clone(), limit.clone());
        match sums.get_mut(&id) {
            Some(sum) => {
                sum.count = sum.count.saturating_add(told.count);
                sum.last_at = sum.last_at.max(told.last_at);
            }
            None => {
                sums.insert(id, told);
            }
        }
    }
    let mut all: Vec<RefusedKey> = sums.into_values().collect();
    all.sort_by_key(|told| std::cmp::Reverse(told.count));
    all.truncate(MOST_TOLD);
    all
}

impl Refused {
    fn told(&self, count: u64) -> RefusedKey {
        let key = Subject::from_escaped(&self.subject).map(|subject| subject.key().into_owned());
        let key = key.unwrap_or_else(|| self.subject.to_string());
        let tenant = Subject::parse(&self.subject).map(|parts| parts.tenant).unwrap_or_default();
        let tenant = String::from_utf8_lossy(&tenant).into_owned();
        let length = json_length(&(&key, &tenant, &self.facts));
        RefusedKey {
            key: short(key),
            tenant: short(tenant),
            rule: self.rule.to_string(),
            limit: self.limit.to_string(),
            count,
            last_at: self.last.as_micros() / 1000,
            facts: self.facts.clone().filter(|_| length <= LONGEST),
        }
    }
}

/// What may be told of a request, if it is text and short.
fn facts_of(asked: &Query<'_>) -> Option<BTreeMap<String, String>> {
    let Query::ByPolicy(request) = asked else { return None };
    let known = TELLABLE.iter().filter_map(|name| Some((*name, request.facts().get(name)?)));
    let mut told = BTreeMap::new();
    for (name, value) in known {
        let Cow::Borrowed(text) = String::from_utf8_lossy(value) else { return None };
        // Rules match paths without their query, which may hold a secret.
        let text = if name == "path" { without_query(text) } else { text };
        told.insert(name.to_owned(), text.to_owned());
    }
    (!told.is_empty()).then_some(told).filter(|told| json_length(told) <= LONGEST)
}

fn without_query(path: &str) -> &str {
    path.split(['?', '#']).next().unwrap_or_default()
}

/// A text that is cut, with a mark, if it is long as JSON.
fn short(text: String) -> String {
    if json_length(&text) <= LONGEST / 2 {
        return text;
    }
    // Six bytes of JSON are the most that one byte of text takes.
    let letters = text.char_indices().take_while(|(at, _)| *at < LONGEST / 12 - 1);
    letters.map(|(_, letter)| letter).chain(['…']).collect()
}

fn json_length(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |text| text.len())
}

#[cfg(test)]
mod tests {
    use tollgate::{Facts, Request};

    use super::*;

    const API: (&str, &str) = ("api", "60s");

    fn at(minute: u64) -> Timestamp {
        Timestamp::from_micros(minute * MINUTE)
    }

    fn counts(keys: &RefusedKeys, now: u64) -> Vec<(String, u64)> {
        keys.top_at(at(now)).into_iter().map(|told| (told.key, told.count)).collect()
    }

    #[test]
    fn refusals_add_up_over_minutes_and_are_forgotten_after_five() {
        let keys = RefusedKeys::new();
        for minute in 100..105 {
            keys.add(":a", API, at(minute), || None);
        }
        keys.add(":b", API, at(104), || None);
        assert_eq!(counts(&keys, 104), [("a".to_owned(), 5), ("b".to_owned(), 1)]);
        keys.add(":b", API, at(106), || None);
        assert_eq!(counts(&keys, 106), [("a".to_owned(), 3), ("b".to_owned(), 2)]);
        assert_eq!(counts(&keys, 110), [("b".to_owned(), 1)], "also if nothing more is refused");
        assert_eq!(counts(&keys, 111), []);
        assert!(keys.shards.iter().all(|shard| shard.lock().is_empty()), "nothing is kept longer");
    }

    #[test]
    fn a_clock_that_is_put_back_neither_hides_nor_keeps_anything() {
        let keys = RefusedKeys::new();
        keys.add(":a", API, at(100), || None);
        keys.add(":a", API, at(99), || None);
        assert_eq!(counts(&keys, 100), [("a".to_owned(), 2)], "it trembled");
        keys.add(":a", API, at(40), || None);
        assert_eq!(counts(&keys, 40), [("a".to_owned(), 1)], "it was put back");
    }

    #[test]
    fn one_key_under_two_limits_is_two() {
        let keys = RefusedKeys::new();
        keys.add(":a", API, at(1), || None);
        keys.add(":a", ("api", "3600s"), at(1), || None);
        keys.add(":a", ("other", "60s"), at(1), || None);
        assert_eq!(keys.top_at(at(1)).len(), 3);
    }

    #[test]
    fn who_is_refused_most_is_found_among_any_number_and_told_at_most_little_too_low() {
        let keys = RefusedKeys::new();
        let (often, rare) = (2000, 50_000);
        for nth in 0..rare {
            keys.add(&format!(":rare{nth}"), API, at(1), || None);
            if nth % (rare / often) == 0 {
                keys.add(":often", API, at(1), || None);
            }
        }
        let (key, count) = counts(&keys, 1).into_iter().next().unwrap();
        let lost = (often + rare) / u64::try_from(MOST_KEYS).unwrap();
        assert_eq!(key, "often");
        assert!(count <= often && count >= often - lost, "{count}");
        let kept: usize =
            keys.shards.iter().map(|shard| shard.lock().front().map_or(0, |m| m.keys.len())).sum();
        assert!(kept <= SHARDS * MOST_KEYS, "{kept}");
    }

    #[test]
    fn what_two_nodes_refused_is_one() {
        let told = |count, last_at| RefusedKey {
            key: "a".to_owned(),
            tenant: String::new(),
            rule: "api".to_owned(),
            limit: "60s".to_owned(),
            count,
            last_at,
            facts: None,
        };
        let other = RefusedKey { tenant: "acme".to_owned(), ..told(9, 9) };
        let all = most_refused([told(1, 7), other.clone(), told(3, 5)]);
        assert_eq!(all, [other, told(4, 7)]);
        assert_eq!(most_refused([told(u64::MAX, 0), told(1, 0)]).first().unwrap().count, u64::MAX);
    }

    #[test]
    fn secrets_and_long_facts_are_not_told() {
        let told = |pairs: &[(&str, &str)]| {
            let facts = Facts::of(pairs.iter().copied()).unwrap();
            facts_of(&Query::ByPolicy(Request::new(facts)))
        };
        let known = told(&[("client", "c"), ("api_key", "k"), ("header:cookie", "s"), ("x", "y")]);
        assert_eq!(known.unwrap().into_keys().collect::<Vec<_>>(), ["client"]);
        assert_eq!(told(&[("api_key", "k")]), None);
        let path = told(&[("path", "/orders?token=secret#part")]).unwrap();
        assert_eq!(path["path"], "/orders");
        let long = "c".repeat(1024);
        assert!(told(&[("client", &long), ("path", &long)]).is_some());
        let hostile = "\u{1}".repeat(1024);
        assert_eq!(told(&[("client", &hostile)]), None);
    }

    #[test]
    fn strangers_cannot_make_it_long() {
        let keys = RefusedKeys::new();
        for nth in 0..100 {
            let key = format!("{nth}{}", "\u{1}".repeat(1020));
            let subject = Subject::in_tenant(&key, [&key]);
            keys.add(subject.as_str(), API, at(1), || Some(BTreeMap::new()));
        }
        let told = serde_json::to_string(&keys.top_at(at(1))).unwrap();
        assert!(told.len() < MOST_TOLD * (LONGEST + 300), "{}", told.len());
        let whole = "k".repeat(1024);
        keys.add(Subject::of([&whole]).as_str(), API, at(9), || None);
        assert_eq!(keys.top_at(at(9)).first().unwrap().key, whole);
    }
}
