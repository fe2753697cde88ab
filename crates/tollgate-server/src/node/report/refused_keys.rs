//! The keys refused most often in the last five minutes, in bounded memory.
//!
//! Each minute has a table of at most [`MAX_KEYS`] keys per shard. When a new key finds it full, every count is
//! decremented and keys at zero are dropped (Misra-Gries). A key with more than 1/`MAX_KEYS` of the refusals is never
//! lost, and a count is too low by at most refusals / `MAX_KEYS`.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::BuildHasher;

use hashbrown::HashTable;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tollgate::policy::Policy;
use tollgate::{Clock, DefaultHasher, Limit, Outcome, Query, Subject, SystemClock, Timestamp};

use super::refusal_rate::{RecentCounts, rate_milli};

/// Number of minutes kept.
const MINUTES: usize = 5;
/// One minute in microseconds.
const MINUTE: u64 = 60_000_000;
/// Number of tables per minute, each with its own lock.
const SHARDS: usize = 4;
/// Maximum keys per table.
const MAX_KEYS: usize = 128;
/// Maximum keys per report.
const MAX_REPORTED: usize = 20;
/// Maximum JSON length of a key with its facts, in bytes. Facts beyond it are omitted, longer keys are truncated.
const MAX_JSON_BYTES: usize = 4096;
/// The facts that are reported. Other facts, such as an API key, may be secret.
const REPORTED_FACTS: [&str; 8] =
    ["client", "user", "ip", "method", "path", "host", "tenant", "tier"];

/// A refused key, and the limit that refused it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RefusedKey {
    pub(crate) key: String,
    pub(crate) tenant: String,
    pub(crate) rule: String,
    pub(crate) limit: String,
    /// The limit as in a policy, such as `10/min`. Nodes of earlier versions do not report it.
    #[serde(default)]
    pub(crate) limit_text: Option<String>,
    /// Lower bound of the number of refusals.
    pub(crate) count: u64,
    /// Time of the last refusal, in milliseconds since the Unix epoch.
    pub(crate) last_at: u64,
    /// Facts of one refused request.
    pub(crate) facts: Option<BTreeMap<String, String>>,
    /// Lower bound of the refusals per 1000 s, averaged over the last 5 to 10 s.
    #[serde(default)]
    pub(crate) rate_milli: u64,
}

impl RefusedKey {
    /// Returns the limit as in a policy: that of the last refusal, otherwise that of the policy.
    pub(crate) fn limit_text(&self, policy: &Policy) -> Option<String> {
        let of_policy = || {
            let mut limits = policy.rule(&self.rule)?.limits().iter();
            limits.find(|limit| limit.name() == self.limit).map(Limit::to_string)
        };
        self.limit_text.clone().or_else(of_policy)
    }
}

/// Counts refusals per key.
#[derive(Debug)]
pub(crate) struct RefusedKeys {
    hasher: DefaultHasher,
    clock: SystemClock,
    shards: [Mutex<VecDeque<Minute>>; SHARDS],
}

#[derive(Debug)]
struct Minute {
    number: u64,
    keys: HashTable<Entry>,
}

#[derive(Debug)]
struct Entry {
    hash: u64,
    subject: Box<str>,
    limit: Limit,
    count: u64,
    recent: RecentCounts,
    last: Timestamp,
    facts: Option<BTreeMap<String, String>>,
}

impl RefusedKeys {
    pub(crate) fn new() -> Self {
        Self {
            hasher: DefaultHasher::default(),
            clock: SystemClock::new(),
            shards: Default::default(),
        }
    }

    /// Counts an outcome if a limit refused it.
    pub(crate) fn note(&self, query: &Query<'_>, outcome: &Outcome<'_, '_>) {
        let decision = outcome.decision;
        if decision.is_allowed() {
            return;
        }
        let Some(status) = decision.deciding() else { return };
        let deciding = (status.limit().rule(), status.limit().name());
        let is_deciding = |limit: &Limit| (limit.rule(), limit.name()) == deciding;
        let take = outcome.plan.takes().iter().find(|take| is_deciding(take.key().limit()));
        let Some(take) = take else { return };
        let (subject, limit) = (take.key().subject(), take.key().limit());
        self.add(subject, limit, self.clock.now(), || reported_facts(query));
    }

    fn add(
        &self,
        subject: &str,
        limit: &Limit,
        at: Timestamp,
        facts: impl FnOnce() -> Option<BTreeMap<String, String>>,
    ) {
        let id = (subject, limit.rule(), limit.name());
        let hash = self.hasher.hash_one(id);
        let is_same = |entry: &Entry| entry.id() == id;
        let shard = usize::try_from(hash >> 32).unwrap_or_default() % SHARDS;
        let Some(shard) = self.shards.get(shard) else { return };
        let mut minutes = shard.lock();
        let Some(keys) = table_at(&mut minutes, at) else { return };
        if let Some(entry) = keys.find_mut(hash, is_same) {
            (entry.count, entry.last) = (entry.count + 1, at.max(entry.last));
            entry.recent.add(at);
            // An override or a new policy may have changed the numbers.
            if entry.limit != *limit {
                entry.limit = limit.clone();
            }
            return;
        }
        if keys.len() >= MAX_KEYS {
            keys.retain(|entry| {
                entry.count -= 1;
                entry.count > 0
            });
            return;
        }
        let (subject, limit) = (Box::from(subject), limit.clone());
        let mut recent = RecentCounts::default();
        recent.add(at);
        let facts = facts();
        let entry = Entry { hash, subject, limit, count: 1, recent, last: at, facts };
        keys.insert_unique(hash, entry, |entry| entry.hash);
    }

    /// Returns the keys refused most often, most refused first.
    pub(crate) fn top(&self) -> Vec<RefusedKey> {
        self.top_at(self.clock.now())
    }

    fn top_at(&self, now: Timestamp) -> Vec<RefusedKey> {
        merge_refused(self.shards.iter().flat_map(|shard| {
            let mut minutes = shard.lock();
            drop_old(&mut minutes, now);
            let mut sums = sums_of(&minutes, now);
            sums.sort_unstable_by_key(|(count, _, entry)| (Reverse(*count), &entry.subject));
            let top = sums.into_iter().take(MAX_REPORTED);
            top.map(|sum| to_refused_key(sum, now)).collect::<Vec<_>>()
        }))
    }

    /// Returns all counted keys that are wanted, not only the most refused.
    pub(crate) fn find(&self, is_wanted: impl Fn(&RefusedKey) -> bool) -> Vec<RefusedKey> {
        let now = self.clock.now();
        let mut found = Vec::new();
        for shard in &self.shards {
            let mut minutes = shard.lock();
            drop_old(&mut minutes, now);
            let all = sums_of(&minutes, now).into_iter();
            found.extend(all.map(|sum| to_refused_key(sum, now)).filter(&is_wanted));
        }
        found
    }
}

fn to_refused_key((count, recent, entry): (u64, u64, &Entry), now: Timestamp) -> RefusedKey {
    entry.to_refused_key(count, rate_milli(recent, now))
}

/// Drops the minutes that are too old at `now`.
fn drop_old(minutes: &mut VecDeque<Minute>, now: Timestamp) {
    let oldest = (now.as_micros() / MINUTE).saturating_sub(MINUTES as u64 - 1);
    minutes.retain(|minute| minute.number >= oldest);
}

/// Returns the table of the minute at `at`, creating it and dropping old minutes if needed. Minutes are newest first.
fn table_at(minutes: &mut VecDeque<Minute>, at: Timestamp) -> Option<&mut HashTable<Entry>> {
    let number = at.as_micros() / MINUTE;
    // A clock that steps back by more than a minute clears all minutes; a smaller step counts for the newest minute.
    if minutes.front().is_some_and(|newest| newest.number > number + 1) {
        minutes.clear();
    }
    if minutes.front().is_none_or(|newest| newest.number < number) {
        minutes.push_front(Minute { number, keys: HashTable::new() });
        minutes.truncate(MINUTES);
    }
    minutes.front_mut().map(|newest| &mut newest.keys)
}

/// Returns each key once, with its count over all minutes and its recent count.
fn sums_of(minutes: &VecDeque<Minute>, now: Timestamp) -> Vec<(u64, u64, &Entry)> {
    let mut sums: HashMap<(&str, &str, &str), (u64, u64, &Entry)> = HashMap::new();
    for minute in minutes {
        for entry in &minute.keys {
            // Minutes are newest first, so the first entry found has the last refusal.
            let recent = entry.recent.at(now);
            let sum = sums.entry(entry.id()).and_modify(|(sum, recent_sum, _)| {
                (*sum, *recent_sum) = (*sum + entry.count, *recent_sum + recent);
            });
            sum.or_insert((entry.count, recent, entry));
        }
    }
    sums.into_values().collect()
}

/// Merges lists of refused keys, also of several nodes, and returns the most refused.
pub(crate) fn merge_refused(lists: impl IntoIterator<Item = RefusedKey>) -> Vec<RefusedKey> {
    let mut all = add_up_refused(lists);
    all.sort_by_key(|refused| Reverse(refused.count));
    all.truncate(MAX_REPORTED);
    all
}

/// Merges lists of refused keys: adds up the counts of the same key and keeps the facts and the limit of the last refusal.
pub(crate) fn add_up_refused(lists: impl IntoIterator<Item = RefusedKey>) -> Vec<RefusedKey> {
    let mut sums: BTreeMap<(String, String, String, String), RefusedKey> = BTreeMap::new();
    for refused in lists {
        let RefusedKey { key, tenant, rule, limit, .. } = &refused;
        let id = (tenant.clone(), key.clone(), rule.clone(), limit.clone());
        match sums.get_mut(&id) {
            Some(sum) => {
                sum.count = sum.count.saturating_add(refused.count);
                sum.rate_milli = sum.rate_milli.saturating_add(refused.rate_milli);
                if refused.last_at > sum.last_at {
                    (sum.last_at, sum.facts) = (refused.last_at, refused.facts);
                    sum.limit_text = refused.limit_text;
                }
            }
            None => {
                sums.insert(id, refused);
            }
        }
    }
    sums.into_values().collect()
}

impl Entry {
    /// Returns the subject, the rule and the name of the limit.
    fn id(&self) -> (&str, &str, &str) {
        (&self.subject, self.limit.rule(), self.limit.name())
    }

    fn to_refused_key(&self, count: u64, rate_milli: u64) -> RefusedKey {
        let key = Subject::from_escaped(&self.subject).map(|subject| subject.key().into_owned());
        let key = key.unwrap_or_else(|| self.subject.to_string());
        let tenant = Subject::parse(&self.subject).map(|parts| parts.tenant).unwrap_or_default();
        let tenant = String::from_utf8_lossy(&tenant).into_owned();
        let length = json_length(&(&key, &tenant, &self.facts));
        RefusedKey {
            key: truncate(key),
            tenant: truncate(tenant),
            rule: self.limit.rule().to_owned(),
            limit: self.limit.name().to_owned(),
            limit_text: Some(self.limit.to_string()),
            count,
            last_at: self.last.as_micros() / 1000,
            facts: self.facts.clone().filter(|_| length <= MAX_JSON_BYTES),
            rate_milli,
        }
    }
}

/// Returns the reported facts of a request; `None` if they are not UTF-8 or too long.
fn reported_facts(query: &Query<'_>) -> Option<BTreeMap<String, String>> {
    let Query::ByPolicy(request) = query else { return None };
    let known = REPORTED_FACTS.iter().filter_map(|name| Some((*name, request.facts().get(name)?)));
    let mut facts = BTreeMap::new();
    for (name, value) in known {
        let Cow::Borrowed(text) = String::from_utf8_lossy(value) else { return None };
        // The query string may contain a secret; rules match paths without it.
        let text = if name == "path" { without_query(text) } else { text };
        facts.insert(name.to_owned(), text.to_owned());
    }
    (!facts.is_empty()).then_some(facts).filter(|facts| json_length(facts) <= MAX_JSON_BYTES)
}

fn without_query(path: &str) -> &str {
    path.split(['?', '#']).next().unwrap_or_default()
}

/// Truncates a text that is too long as JSON, and appends `…`.
fn truncate(text: String) -> String {
    if json_length(&text) <= MAX_JSON_BYTES / 2 {
        return text;
    }
    // One byte of text takes at most six bytes of JSON.
    let chars = text.char_indices().take_while(|(index, _)| *index < MAX_JSON_BYTES / 12 - 1);
    chars.map(|(_, char)| char).chain(['…']).collect()
}

fn json_length(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |text| text.len())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate::{Facts, Quota, Request};

    use super::*;

    /// A limit of a rule. Its name is that of its window.
    fn limit(rule: &str, count: u64, seconds: u64) -> Limit {
        let quota = Quota::try_new(count, Duration::from_secs(seconds)).unwrap();
        Limit::sliding_window(quota).unwrap().in_rule(rule).unwrap()
    }

    fn api() -> Limit {
        limit("api", 10, 60)
    }

    fn at(minute: u64) -> Timestamp {
        Timestamp::from_micros(minute * MINUTE)
    }

    fn counts(keys: &RefusedKeys, now: u64) -> Vec<(String, u64)> {
        keys.top_at(at(now)).into_iter().map(|refused| (refused.key, refused.count)).collect()
    }

    #[test]
    fn refusals_add_up_over_minutes_and_expire_after_five() {
        let keys = RefusedKeys::new();
        for minute in 100..105 {
            keys.add(":a", &api(), at(minute), || None);
        }
        keys.add(":b", &api(), at(104), || None);
        assert_eq!(counts(&keys, 104), [("a".to_owned(), 5), ("b".to_owned(), 1)]);
        keys.add(":b", &api(), at(106), || None);
        assert_eq!(counts(&keys, 106), [("a".to_owned(), 3), ("b".to_owned(), 2)]);
        assert_eq!(counts(&keys, 110), [("b".to_owned(), 1)], "expires without new refusals too");
        assert_eq!(counts(&keys, 111), []);
        assert!(keys.shards.iter().all(|shard| shard.lock().is_empty()), "memory is released");
    }

    #[test]
    fn finds_keys_beyond_the_most_refused() {
        let keys = RefusedKeys::new();
        let now = keys.clock.now();
        for nth in 0..100 {
            keys.add(&format!(":k{nth}"), &api(), now, || None);
        }
        keys.add(":k7", &api(), now, || None);
        let found = keys.find(|refused| refused.key == "k7");
        assert_eq!(found.iter().map(|refused| refused.count).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn handles_a_clock_that_steps_back() {
        let keys = RefusedKeys::new();
        keys.add(":a", &api(), at(100), || None);
        keys.add(":a", &api(), at(99), || None);
        assert_eq!(counts(&keys, 100), [("a".to_owned(), 2)], "one minute back");
        keys.add(":a", &api(), at(40), || None);
        assert_eq!(counts(&keys, 40), [("a".to_owned(), 1)], "one hour back");
    }

    #[test]
    fn counts_a_key_separately_for_each_limit() {
        let keys = RefusedKeys::new();
        keys.add(":a", &api(), at(1), || None);
        keys.add(":a", &limit("api", 10, 3600), at(1), || None);
        keys.add(":a", &limit("other", 10, 60), at(1), || None);
        assert_eq!(keys.top_at(at(1)).len(), 3);
    }

    #[test]
    fn text_of_the_limit_is_that_of_the_last_refusal() {
        let keys = RefusedKeys::new();
        let texts = || -> Vec<_> {
            keys.top_at(at(1)).into_iter().map(|refused| refused.limit_text.unwrap()).collect()
        };
        keys.add(":a", &api(), at(1), || None);
        assert_eq!(texts(), ["10/min"]);
        keys.add(":a", &limit("api", 20, 60), at(1), || None);
        assert_eq!(texts(), ["20/min"], "an override has raised the limit");
    }

    #[test]
    fn finds_the_most_refused_key_among_many_within_the_bound() {
        let keys = RefusedKeys::new();
        let (often, rare) = (2000, 50_000);
        for nth in 0..rare {
            keys.add(&format!(":rare{nth}"), &api(), at(1), || None);
            if nth % (rare / often) == 0 {
                keys.add(":often", &api(), at(1), || None);
            }
        }
        let (key, count) = counts(&keys, 1).into_iter().next().unwrap();
        let max_error = (often + rare) / u64::try_from(MAX_KEYS).unwrap();
        assert_eq!(key, "often");
        assert!(count <= often && count >= often - max_error, "{count}");
        let kept: usize =
            keys.shards.iter().map(|shard| shard.lock().front().map_or(0, |m| m.keys.len())).sum();
        assert!(kept <= SHARDS * MAX_KEYS, "{kept}");
    }

    #[test]
    fn rate_is_the_average_of_the_last_seconds() {
        let keys = RefusedKeys::new();
        // Two refusals per second, also across the end of a minute.
        let second =
            |second: u64, half: u64| Timestamp::from_micros(second * 1_000_000 + half * 500_000);
        for nth in 0..90 {
            keys.add(":a", &api(), second(1000 + nth / 2, nth % 2), || None);
        }
        let rate = |now| keys.top_at(now).first().unwrap().rate_milli;
        assert_eq!(rate(second(1044, 1)), 10 * 2 * 1_000_000 / 9500);
        assert_eq!(rate(second(1045, 0)), 2000);
        assert_eq!(rate(second(1050, 0)), 0, "no refusal in the last ten seconds");
    }

    #[test]
    fn merges_the_same_key_of_two_nodes() {
        let refused = |count, last_at| RefusedKey {
            key: "a".to_owned(),
            tenant: String::new(),
            rule: "api".to_owned(),
            limit: "60s".to_owned(),
            limit_text: Some(format!("{last_at}/min")),
            count,
            last_at,
            facts: None,
            rate_milli: 1500 * count.min(9),
        };
        let tenant = RefusedKey { tenant: "acme".to_owned(), ..refused(9, 9) };
        let merged = merge_refused([refused(1, 7), tenant.clone(), refused(3, 5)]);
        assert_eq!(merged, [tenant, refused(4, 7)]);
        let saturated = merge_refused([refused(u64::MAX, 0), refused(1, 0)]);
        assert_eq!(saturated.first().unwrap().count, u64::MAX);
    }

    #[test]
    fn omits_secret_facts_and_long_facts() {
        let reported = |pairs: &[(&str, &str)]| {
            let facts = Facts::of(pairs.iter().copied()).unwrap();
            reported_facts(&Query::ByPolicy(Request::new(facts)))
        };
        let facts =
            reported(&[("client", "c"), ("api_key", "k"), ("header:cookie", "s"), ("x", "y")]);
        assert_eq!(facts.unwrap().into_keys().collect::<Vec<_>>(), ["client"]);
        assert_eq!(reported(&[("api_key", "k")]), None);
        let path = reported(&[("path", "/orders?token=secret#part")]).unwrap();
        assert_eq!(path["path"], "/orders");
        let long = "c".repeat(1024);
        assert!(reported(&[("client", &long), ("path", &long)]).is_some());
        let hostile = "\u{1}".repeat(1024);
        assert_eq!(reported(&[("client", &hostile)]), None);
    }

    #[test]
    fn bounds_the_report_length_for_hostile_keys() {
        let keys = RefusedKeys::new();
        for nth in 0..100 {
            let key = format!("{nth}{}", "\u{1}".repeat(1020));
            let subject = Subject::in_tenant(&key, [&key]);
            keys.add(subject.as_str(), &api(), at(1), || Some(BTreeMap::new()));
        }
        let report = serde_json::to_string(&keys.top_at(at(1))).unwrap();
        assert!(report.len() < MAX_REPORTED * (MAX_JSON_BYTES + 300), "{}", report.len());
        let long = "k".repeat(1024);
        keys.add(Subject::of([&long]).as_str(), &api(), at(9), || None);
        assert_eq!(keys.top_at(at(9)).first().unwrap().key, long, "not truncated");
    }
}
