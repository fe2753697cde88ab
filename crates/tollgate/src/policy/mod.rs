//! Policies: which limits apply to which requests, from one file.
//!
//! [`Policy::from_yaml`] parses, validates and indexes the whole file once. Planning a request with 10 000
//! rules then takes about as long as with one. A `Policy` is immutable: a changed file becomes a new `Policy`.
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
mod digest;
mod error;
mod fact_name;
mod fact_spec;
mod facts_used;
mod import;
mod index;
mod limiters;
mod node_ref;
mod normalized_facts;
mod overrides;
mod parse;
mod path;
mod policy_plan;
mod prices;
mod recycled_subject;
mod rule;
mod schema;
#[cfg(test)]
mod schema_tests;
mod short_subject;
mod single_limit;
mod suggestion;
mod tiers;
mod trace;
mod yaml_error;
mod yaml_tree;

mod wildcard;

use std::collections::HashMap;

use foldhash::fast::RandomState;
use smallvec::SmallVec;

pub use condition::Condition;
pub use error::{FieldError, PolicyError, PolicyErrorKind};
pub use fact_name::FactName;
pub use fact_spec::{FactSpec, SourceSpec, is_secret_header, secret_digest};
pub use import::{ImportFormat, ImportedPolicy, import};
pub use limiters::{AcquireMode, NamedLimits};
pub(crate) use overrides::ActiveOverrides;
pub use overrides::{
    OtherLimits, Override, OverrideCandidate, OverrideEffect, OverrideError, OverrideErrorKind,
    OverrideLimit, OverrideStorage, Overrides,
};
pub use policy_plan::{MatchedRule, PolicyPlan};
pub use prices::Prices;
pub use rule::{OnMissingFact, Rule, RuleMode};
pub use schema::SCHEMA;
pub use single_limit::SingleLimit;
pub use trace::{RuleOutcome, Trace, TriedRule};

pub use crate::plan::{Distributed, OnStoreLoss};

use crate::algorithm::Algorithm;
use crate::limit::Limit;
use crate::quota::Quota;
use crate::request::{FactValue, Facts, Request, RequestView};

use index::Index;
use normalized_facts::NormalizedFacts;
use parse::PolicyFile;
use rule::MatchResult;
use tiers::Tiers;

/// Parses a duration in policy syntax: `30s`, `5min`, `2h`.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(tollgate::policy::parse_duration("2h"), Ok(Duration::from_secs(7200)));
/// assert!(tollgate::policy::parse_duration("2 hours").is_err());
/// ```
///
/// # Errors
/// An unknown unit, or a duration too long for a `u64` of milliseconds.
pub fn parse_duration(text: &str) -> Result<std::time::Duration, &'static str> {
    parse::rate::duration(text)
}

/// The fact that identifies a client. Overrides are looked up by it.
const CLIENT: &str = "client";

/// The rules, defaults and tenant that determine the limits of a request.
///
/// Rules are tried in file order and the first match decides. A rule with `continue: true` adds the next
/// match as well; an unlimited rule ends the search. If no rule matches, the default limit applies.
/// See the [module](self) for an example.
#[derive(Debug)]
pub struct Policy {
    version: Box<str>,
    tenant: Box<str>,
    tiers: Tiers,
    facts: Vec<FactSpec>,
    prices: Prices,
    rules: Vec<Rule>,
    by_name: HashMap<Box<str>, usize, RandomState>,
    default: Rule,
    /// Counts requests with their own limit that no rule matches.
    inline: Rule,
    index: Index,
    facts_used: Vec<FactName>,
    holds_slots: bool,
    /// Whether one limit decides every request; see `single_limit`.
    has_single_limit: bool,
    limiters: Vec<NamedLimits>,
    warnings: Vec<String>,
}

impl Policy {
    /// Returns a policy without rules: 100 requests in any 60 seconds per client.
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

    /// Returns the built-in default limit: 100 requests in any 60 seconds (sliding window).
    #[must_use]
    pub fn builtin_limit() -> Limit {
        const QUOTA: Quota = Quota::per_minute(100);
        // 100 always fits a sliding window. If that ever changed, a block would be the safe fallback.
        Limit::sliding_window(QUOTA).unwrap_or_else(|_| Limit::block())
    }

    /// Returns a policy without rules that applies `limit` to each client.
    #[must_use]
    pub fn with_default(limit: Limit) -> Self {
        Self::from_file(PolicyFile::with_default(limit), "builtin".into())
    }

    /// Parses a policy from YAML. `file` is the file name for error messages; `default` is the default limit
    /// if the text does not set one.
    ///
    /// # Errors
    /// Every error in the text, each with line, column and field.
    pub fn from_yaml(file: &str, text: &str, default: Limit) -> Result<Self, PolicyError> {
        parse::file(file, text, default).map(|file| Self::from_file(file, digest::short_hex(text)))
    }

    fn from_file(file: PolicyFile, version: Box<str>) -> Self {
        let PolicyFile { tenant, tiers, facts, prices, rules, default, limiters, warnings } = file;
        let names = rules.iter().map(|rule| (rule.name.clone(), rule.index));
        let (by_name, index) = (names.collect(), Index::new(&rules));
        let all_rules = || rules.iter().chain([&default]);
        let facts_used = facts_used::facts_used(all_rules());
        let holds_slots = facts_used::holds_slots(all_rules());
        let inline = Rule::inline(&default);
        let first = rules.first().unwrap_or(&default);
        let has_single_limit = single_limit::has_single_limit(first);
        Self {
            version,
            tenant,
            tiers,
            facts,
            prices,
            rules,
            by_name,
            default,
            inline,
            index,
            facts_used,
            holds_slots,
            has_single_limit,
            limiters,
            warnings,
        }
    }

    /// Returns the rules that apply to `request`, each with its subject.
    #[must_use]
    pub fn plan<'p>(&'p self, request: &Request<'_>) -> PolicyPlan<'p> {
        self.plan_with(&RequestView::from(request), None)
    }

    /// [`plan`](Self::plan) with overrides.
    #[inline(always)]
    pub(crate) fn plan_with<'p>(
        &'p self,
        request: &RequestView<'_, '_>,
        overrides: Option<&ActiveOverrides>,
    ) -> PolicyPlan<'p> {
        let facts = self.normalized_facts(request.facts);
        if let Some(rule) = self.certain_rule(request) {
            let matched = MatchedRule::new(rule, &facts, request, overrides);
            // If an override has too many limits for one plan, decide by the rule's own.
            if !matched.is_overridden() || matched.fits() {
                return PolicyPlan::of_one(matched, &self.default);
            }
        }
        self.search(request, &facts, overrides)
    }

    /// Returns the rule that decides every request like this one, whatever its facts are, if there is one.
    fn certain_rule(&self, request: &RequestView<'_, '_>) -> Option<&Rule> {
        let first = match self.rules.first() {
            None if request.uses_default => &self.default,
            first => first?,
        };
        (first.is_certain() && request.limit.is_none()).then_some(first)
    }

    /// Searches the rules that apply to a request.
    #[inline(never)]
    fn search<'p>(
        &'p self,
        request: &RequestView<'_, '_>,
        facts: &NormalizedFacts<'_, '_>,
        overrides: Option<&ActiveOverrides>,
    ) -> PolicyPlan<'p> {
        let candidates = self.index.candidates(facts);
        let candidates =
            candidates.filter_map(|number| self.rules.get(usize::try_from(number).ok()?));
        let rules = self.find_matches(candidates, facts, request.uses_default, |_, _| {});
        if let Some(limit) = request.limit {
            let rule = rules.last().copied().unwrap_or(&self.inline);
            let matched = MatchedRule::with_limit(rule, facts, request, limit);
            return PolicyPlan::of_one(matched, &self.default);
        }
        let plan_with = |overrides| {
            let matched =
                rules.iter().map(|rule| MatchedRule::new(rule, facts, request, overrides));
            PolicyPlan::new(matched, &self.default)
        };
        let plan = plan_with(overrides);
        // An override that is older than this policy can exceed the maximum number of takes. Then decide by
        // the rules' own limits instead of failing.
        if plan.is_overridden() && !plan.fits() { plan_with(None) } else { plan }
    }

    /// Adds the facts that the policy uses to `facts`, which has none of them yet: `value` returns the value of each, or
    /// `None` if the request does not have it. A value that is empty, or longer than
    /// [`MAX_FACT_LENGTH`](crate::MAX_FACT_LENGTH) bytes, counts as missing.
    ///
    /// ```
    /// use tollgate::policy::FactName;
    /// use tollgate::{FactValue, Facts, Policy};
    ///
    /// let policy = Policy::builtin();
    /// let mut facts = Facts::new();
    /// let value = |fact: &FactName| (fact.as_str() == "client").then(|| FactValue::from("c1"));
    /// policy.collect_facts(&mut facts, value);
    /// assert_eq!(facts.get("client"), Some(&b"c1"[..]));
    /// ```
    #[inline]
    pub fn collect_facts<'a>(
        &'a self,
        facts: &mut Facts<'a>,
        mut value: impl FnMut(&'a FactName) -> Option<FactValue<'a>>,
    ) {
        for fact in &self.facts_used {
            if let Some(value) = value(fact) {
                facts.push(fact.as_str(), value);
            }
        }
    }

    /// Returns every rule that was tried for `request`, with the reason if it did not match.
    ///
    /// Tries all rules in sequence without the index, so it is too slow to call on every request.
    #[must_use]
    pub fn explain(&self, request: &Request<'_>) -> Trace {
        let facts = self.normalized_facts(request.facts());
        let mut trace = Trace::new();
        let uses_default = request.uses_default_limit();
        let _ = self.find_matches(self.rules.iter(), &facts, uses_default, |rule, result| {
            trace.add(rule, result, &facts, rule.index == self.rules.len());
        });
        trace
    }

    fn normalized_facts<'v, 'r>(&'v self, facts: &'v Facts<'r>) -> NormalizedFacts<'v, 'r> {
        NormalizedFacts::new(facts, &self.tiers, &self.tenant)
    }

    /// Tries `rules` until one ends the search, then the default rule if none matched and the request uses it. Calls
    /// `on_tried` for each rule that it tries.
    fn find_matches<'p>(
        &'p self,
        rules: impl Iterator<Item = &'p Rule>,
        facts: &NormalizedFacts<'_, '_>,
        uses_default: bool,
        mut on_tried: impl FnMut(&'p Rule, MatchResult<'p>),
    ) -> SmallVec<[&'p Rule; 1]> {
        let mut matched = SmallVec::new();
        let mut matches = |rule: &'p Rule| {
            let result = rule.try_match(facts);
            on_tried(rule, result);
            matches!(result, MatchResult::Matched)
        };
        for rule in rules {
            if matches(rule) {
                matched.push(rule);
                if !rule.continues {
                    return matched;
                }
            }
        }
        if matched.is_empty() && uses_default && matches(&self.default) {
            matched.push(&self.default);
        }
        matched
    }

    /// Returns the rules in file order, without the default rule.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the rule that applies if no other rule matches.
    #[must_use]
    pub const fn default_rule(&self) -> &Rule {
        &self.default
    }

    /// Returns the rule with this name, including the default rule.
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

    /// Returns the limit that a stored key belongs to, live or trial, or `None` if this policy does not have it.
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

    /// Returns the facts that the rules match or count by, each once, headers last. Other facts do not affect
    /// a decision, so a front end does not need to extract them.
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

    /// Returns the facts that the section `facts` defines, in file order.
    #[must_use]
    pub fn fact_specs(&self) -> &[FactSpec] {
        &self.facts
    }

    /// Returns the sources of a fact, or `None` if the section `facts` does not define it. Without a definition,
    /// `client` is the client address.
    #[must_use]
    pub fn fact_spec(&self, fact: &str) -> Option<&FactSpec> {
        self.facts.iter().find(|spec| spec.name().as_str() == fact)
    }

    /// Returns the formulas that convert a usage to amounts of units; see [`Prices`].
    #[must_use]
    pub const fn prices(&self) -> &Prices {
        &self.prices
    }

    /// Returns whether any rule has a [concurrency limit](crate::Limit::concurrency), whose slots must be
    /// released.
    ///
    /// ```
    /// assert!(!tollgate::Policy::builtin().holds_slots());
    /// ```
    #[must_use]
    pub const fn holds_slots(&self) -> bool {
        self.holds_slots
    }

    /// Returns the limiters for outbound calls, in file order. They do not affect requests; programs that
    /// call rate-limited APIs look them up here.
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

    /// Returns the tenant of requests that have no `tenant` fact; empty if the policy does not set one.
    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Returns the first 12 hexadecimal digits of the SHA-256 of the YAML text, or `builtin` for a policy
    /// without a text.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns warnings: valid settings that are probably mistakes.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
