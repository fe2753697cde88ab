//! Policies: which limits apply to which requests, from one file.
//!
//! A policy is read once, checked whole, and compiled; planning a request with ten thousand rules
//! then takes about as long as with one. It never changes: a new file makes a new policy.
//!
//! ```
//! use tollgate::{Facts, Limit, MemoryStore, Policy, Quota, Request};
//!
//! let text = "
//! version: 1
//! rules:
//!   - name: search
//!     match: { path: /search/** }
//!     per: [user]
//!     limits: [10/min, 100/h]
//! ";
//! let default = Limit::sliding_window(Quota::per_minute(100))?;
//! let policy = Policy::from_yaml("policy.yaml", text, default)?;
//!
//! let facts = Facts::of([("user", "u1"), ("path", "/search/books?q=rust")])?;
//! let planned = policy.plan(&Request::new(facts));
//! assert_eq!(planned.rule().name(), "search");
//! assert_eq!(planned.matched()[0].key(), "u1");
//!
//! let plan = planned.plan()?;
//! assert_eq!(MemoryStore::new().take(&plan).remaining(), Some(9));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod condition;
mod cursor;
mod digest;
mod error;
mod fact_name;
mod facts_used;
mod index;
mod limiters;
mod nearest;
mod overrides;
mod path;
mod policy_plan;
mod read;
mod rule;
mod schema;
#[cfg(test)]
mod schema_tests;
mod tiers;
mod trace;
mod tree;
mod view;

mod wildcard;

use std::collections::HashMap;

use foldhash::fast::RandomState;
use smallvec::SmallVec;

pub use condition::Condition;
pub use error::{PolicyError, PolicyErrorKind};
pub use fact_name::FactName;
pub use limiters::{AcquireMode, NamedLimits};
pub(crate) use overrides::ActiveOverrides;
pub use overrides::{
    Override, OverrideEffect, OverrideError, OverrideErrorKind, OverrideLimit, Overrides,
};
pub use policy_plan::{MatchedRule, PolicyPlan};
pub use rule::{OnMissingFact, Rule, RuleMode};
pub use schema::SCHEMA;
pub use trace::{RuleOutcome, Trace, TriedRule};

pub use crate::distribution::{Distributed, OnStoreLoss};

use crate::limit::Limit;
use crate::limit::identity::Algorithm;
use crate::quota::Quota;
use crate::request::Request;
use facts_used::{facts_used, holds_slots};
use index::Index;
use read::File;
use rule::Outcome;
use tiers::Tiers;
use view::View;

/// A length of time, as policies write it: `30s`, `5min`, `2h`.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(tollgate::policy::parse_duration("2h"), Ok(Duration::from_secs(7200)));
/// assert!(tollgate::policy::parse_duration("2 hours").is_err());
/// ```
///
/// # Errors
/// Why it is none.
pub fn parse_duration(text: &str) -> Result<std::time::Duration, &'static str> {
    read::rate::length(text)
}

/// The fact by which clients are told apart, and overrides find them.
const CLIENT: &str = "client";

/// The rules, defaults and tenant that decide what applies to a request.
///
/// The rules are tried in the file's order and the first that matches decides; one that continues
/// adds the next that matches; an unlimited one ends the search. If none matches, the default limit
/// applies. See the [module](self) for an example.
#[derive(Debug)]
pub struct Policy {
    version: Box<str>,
    tenant: Box<str>,
    tiers: Tiers,
    rules: Vec<Rule>,
    by_name: HashMap<Box<str>, usize, RandomState>,
    default: Rule,
    index: Index,
    facts_used: Vec<FactName>,
    holds_slots: bool,
    limiters: Vec<NamedLimits>,
    warnings: Vec<String>,
}

impl Policy {
    /// No rules; 100 requests in any 60 seconds for each client.
    ///
    /// ```
    /// use tollgate::Policy;
    ///
    /// let policy = Policy::builtin();
    /// assert_eq!(policy.version(), "builtin");
    /// assert_eq!(policy.default_rule().limits()[0].count(), 100);
    /// ```
    #[must_use]
    pub fn builtin() -> Self {
        Self::with_default(Self::builtin_limit())
    }

    /// The default limit where nothing is configured: 100 in any 60 seconds.
    #[must_use]
    pub fn builtin_limit() -> Limit {
        const QUOTA: Quota = Quota::per_minute(100);
        // A hundred fits a sliding window; a block is the safe way to be wrong about that.
        Limit::sliding_window(QUOTA).unwrap_or_else(|_| Limit::block())
    }

    /// No rules; this limit for each client.
    #[must_use]
    pub fn with_default(limit: Limit) -> Self {
        Self::of(File::of_default(limit), "builtin".into())
    }

    /// The policy that a YAML text describes. `file` is what errors call it; `default` is the default
    /// limit if the text has none.
    ///
    /// # Errors
    /// All that is wrong with the text, with line, column and field.
    pub fn from_yaml(file: &str, text: &str, default: Limit) -> Result<Self, PolicyError> {
        read::file(file, text, default).map(|file| Self::of(file, digest::short(text)))
    }

    fn of(file: File, version: Box<str>) -> Self {
        let File { tenant, tiers, rules, default, limiters, warnings } = file;
        let names = rules.iter().map(|rule| (rule.name.clone(), rule.index));
        let (by_name, index) = (names.collect(), Index::new(&rules));
        let all = || rules.iter().chain([&default]);
        let (facts_used, holds_slots) = (facts_used(all()), holds_slots(all()));
        Self {
            version,
            tenant,
            tiers,
            rules,
            by_name,
            default,
            index,
            facts_used,
            holds_slots,
            limiters,
            warnings,
        }
    }

    /// The rules that decide this request, and whom they count.
    #[must_use]
    pub fn plan<'p>(&'p self, request: &Request<'_>) -> PolicyPlan<'p> {
        self.plan_with(request, None)
    }

    /// The same where some clients have limits of their own.
    pub(crate) fn plan_with<'p>(
        &'p self,
        request: &Request<'_>,
        overrides: Option<&ActiveOverrides>,
    ) -> PolicyPlan<'p> {
        let view = self.view(request);
        let candidates = self.index.candidates(&view);
        let candidates =
            candidates.filter_map(|number| self.rules.get(usize::try_from(number).ok()?));
        let rules = self.walk(candidates, &view, |_, _| {});
        let planned = |overrides| {
            let matched =
                rules.iter().map(|rule| MatchedRule::new(rule, &view, request.cost(), overrides));
            PolicyPlan::new(matched, &self.default)
        };
        let with_own = planned(overrides);
        // A policy that came after an override may leave no room for it. Better without than not at all.
        if with_own.is_overridden() && !with_own.fits() { planned(None) } else { with_own }
    }

    /// Which rules were tried for this request and why those that did not match did not. It tries all
    /// of them one after the other, so it is for people and not for every request.
    #[must_use]
    pub fn explain(&self, request: &Request<'_>) -> Trace {
        let view = self.view(request);
        let mut trace = Trace::new();
        let _ = self.walk(self.rules.iter(), &view, |rule, outcome| {
            trace.add(rule, outcome, &view, rule.index == self.rules.len());
        });
        trace
    }

    fn view<'v, 'r>(&'v self, request: &'v Request<'r>) -> View<'v, 'r> {
        View::new(request, &self.tiers, &self.tenant)
    }

    /// Goes through the rules until one ends the search, then to the default if none matched.
    fn walk<'p>(
        &'p self,
        rules: impl Iterator<Item = &'p Rule>,
        view: &View<'_, '_>,
        mut tried: impl FnMut(&'p Rule, Outcome<'p>),
    ) -> SmallVec<[&'p Rule; 1]> {
        let mut matched = SmallVec::new();
        let mut matches = |rule: &'p Rule| {
            let outcome = rule.outcome(view);
            tried(rule, outcome);
            matches!(outcome, Outcome::Matches)
        };
        for rule in rules {
            if matches(rule) {
                matched.push(rule);
                if !rule.continues {
                    return matched;
                }
            }
        }
        if matched.is_empty() && matches(&self.default) {
            matched.push(&self.default);
        }
        matched
    }

    /// The rules, in the file's order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What applies where no rule matches.
    #[must_use]
    pub const fn default_rule(&self) -> &Rule {
        &self.default
    }

    /// The rule of this name, the default included.
    ///
    /// ```
    /// use tollgate::Policy;
    ///
    /// assert!(Policy::builtin().rule("default").is_some());
    /// assert!(Policy::builtin().rule("search").is_none());
    /// ```
    #[must_use]
    pub fn rule(&self, name: &str) -> Option<&Rule> {
        match self.by_name.get(name) {
            Some(index) => self.rules.get(*index),
            None => Some(&self.default).filter(|default| default.name() == name),
        }
    }

    /// The limit that a stored key belongs to, live or on trial; none if the policy has it no more.
    ///
    /// ```
    /// use tollgate::{Algorithm, Policy};
    ///
    /// let policy = Policy::builtin();
    /// assert!(policy.limit("default", "60s", Algorithm::SlidingWindow).is_some());
    /// assert!(policy.limit("default", "60s", Algorithm::TokenBucket).is_none());
    /// ```
    #[must_use]
    pub fn limit(&self, rule: &str, name: &str, algorithm: Algorithm) -> Option<&Limit> {
        self.rule(rule)?.limit(name, algorithm)
    }

    /// The facts that some rule matches or counts by, each once, headers last. Others make no difference, so a
    /// front end need not look for them.
    ///
    /// ```
    /// use tollgate::Policy;
    ///
    /// let policy = Policy::builtin();
    /// let names: Vec<&str> = policy.facts_used().iter().map(|fact| fact.as_str()).collect();
    /// assert_eq!(names, ["client", "tenant"]);
    /// ```
    #[must_use]
    pub fn facts_used(&self) -> &[FactName] {
        &self.facts_used
    }

    /// Whether some limit is of [slots](crate::Limit::concurrency), which are to be given back.
    ///
    /// ```
    /// assert!(!tollgate::Policy::builtin().holds_slots());
    /// ```
    #[must_use]
    pub const fn holds_slots(&self) -> bool {
        self.holds_slots
    }

    /// The limiters of outbound calls, in the file's order. They decide no request: programs that call
    /// others take them from here.
    ///
    /// ```
    /// use tollgate::Policy;
    ///
    /// let text = "version: 1\nlimiters: { igdb: { key: 'igdb:api', limits: [4/s] }, mirror: 1/s }\n";
    /// let policy = Policy::from_yaml("policy.yaml", text, Policy::builtin_limit())?;
    /// let keys: Vec<&str> = policy.limiters().iter().map(|limiter| limiter.key()).collect();
    /// assert_eq!(keys, ["igdb:api", "mirror"]);
    /// # Ok::<(), tollgate::PolicyError>(())
    /// ```
    #[must_use]
    pub fn limiters(&self) -> &[NamedLimits] {
        &self.limiters
    }

    /// The tenant of requests that name none; empty without one.
    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// The first 12 hexadecimal digits of the text's SHA-256; `builtin` without a text.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What is not wrong but probably not meant.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
