//! `Limiter`: policy, store and observer.

use std::sync::Mutex;
use std::time::Duration;

use tollgate::{
    Decision, Facts, Inline, Limit, Limiter, LimiterError, ManualClock, MemoryStore, Observation,
    Observer, Outcome, Policy, Query, Quota, Request, Verb,
};
use tollgate_testkit::runtime::block_on;

const POLICY: &str = "
version: 1
rules:
- { name: everyone, per: [], limits: [1000/h], continue: true }
- { name: search, match: { path: /search }, limits: [5/min], next: { limits: [2/min] } }
- { name: jobs, match: { path: /jobs }, limits: [{ concurrency: 1, ttl: 30s }] }
";

fn policy(text: &str) -> Policy {
    Policy::from_yaml("policy.yaml", text, Limit::block()).unwrap()
}

fn query(path: &'static str) -> Query<'static> {
    Query::ByPolicy(Request::new(Facts::of([("client", "c1"), ("path", path)]).unwrap()))
}

/// Verb, names of the matched rules, and whether the request was allowed.
type Record = (Verb, Vec<String>, Option<bool>);

/// Observer that records every decision.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<Record>>);

impl Observer for Recorder {
    type Handles = Vec<String>;

    fn resolve(&self, policy: &Policy) -> Vec<String> {
        let rules = policy.rules().iter().chain([policy.default_rule()]);
        rules.map(|rule| rule.name().to_owned()).collect()
    }

    fn decided(&self, handles: &Vec<String>, observed: &Observation<'_, '_>) {
        let matched = observed.query.matched().iter();
        let rules = matched.map(|matched| handles[matched.rule().index()].clone()).collect();
        let allowed = observed.result.ok().map(Decision::is_allowed);
        self.0.lock().unwrap().push((observed.verb, rules, allowed));
    }
}

#[test]
fn observer_sees_every_decision_once_with_its_rules() {
    let limiter = Limiter::with_observer(MemoryStore::new(), policy(POLICY), Recorder::default());
    let decide = |verb, query: &Query<'_>| block_on(limiter.decide(verb, query, |_| ())).unwrap();
    decide(Verb::Take, &query("/search"));
    decide(Verb::Peek, &query("/"));
    limiter.set_policy(policy("version: 1\ndefaults: { limit: 0 }\n"));
    decide(Verb::Take, &query("/search"));
    let inline = vec![Limit::token_bucket(Quota::per_minute(1)).unwrap()];
    decide(Verb::Refund, &Query::Inline(Inline::new("", "k", inline, 1).unwrap()));
    let text = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        *limiter.observer().0.lock().unwrap(),
        [
            (Verb::Take, text(&["everyone", "search"]), Some(true)),
            (Verb::Peek, text(&["everyone"]), Some(true)),
            (Verb::Take, text(&["default"]), Some(false)),
            (Verb::Refund, text(&[]), Some(true)),
        ]
    );
}

#[test]
fn new_policy_keeps_the_used_count() {
    let limiter = Limiter::new(MemoryStore::new(), policy(POLICY));
    let take = |limiter: &Limiter<MemoryStore>| {
        let query = query("/search");
        block_on(limiter.decide(Verb::Take, &query, |outcome| outcome.decision.remaining()))
            .unwrap()
    };
    assert_eq!((take(&limiter), take(&limiter)), (Some(4), Some(3)));
    let previous = limiter.active_policy();
    limiter.set_policy(policy(&POLICY.replace("5/min", "10/min")));
    assert_eq!(take(&limiter), Some(7));
    assert_eq!(previous.policy().rules()[1].limits()[0].count(), 5, "the old policy is unchanged");
}

#[test]
fn outcome_names_rule_and_key() {
    let limiter = Limiter::new(MemoryStore::new(), policy(POLICY));
    let rule_and_key = |query: &Query<'_>| {
        let read =
            |outcome: &Outcome<'_, '_>| (outcome.rule().to_owned(), outcome.key().into_owned());
        block_on(limiter.decide(Verb::Take, query, read)).unwrap()
    };
    assert_eq!(rule_and_key(&query("/search")), ("search".to_owned(), "c1".to_owned()));
    assert_eq!(rule_and_key(&query("/")), ("everyone".to_owned(), "*".to_owned()));
}

#[test]
fn permits_are_issued_renewed_and_released() {
    let clock = ManualClock::new();
    let store = MemoryStore::builder().clock(clock.clone()).build();
    let limiter = Limiter::new(store, policy(POLICY));
    let take = |verb| {
        let read = |outcome: &Outcome<'_, '_>| (outcome.permit.clone(), outcome.expires_at);
        block_on(limiter.decide(verb, &query("/jobs"), read)).unwrap()
    };
    assert_eq!(take(Verb::Peek), (None, None), "a peek holds no slot");
    let (permit, expires_at) = take(Verb::Take);
    let permit = permit.expect("a slot was free");
    assert_eq!(expires_at.unwrap().as_micros(), 30_000_000);
    assert_eq!(take(Verb::Take), (None, None));
    clock.advance(Duration::from_secs(20));
    let until = block_on(limiter.renew(&permit)).unwrap();
    assert_eq!(until.unwrap().as_micros(), 50_000_000);
    assert!(block_on(limiter.release(&permit)).unwrap());
    assert!(take(Verb::Take).0.is_some());
    assert!(block_on(limiter.renew(&permit)).unwrap().is_none());
}

#[test]
fn explain_matches_the_decision_and_takes_nothing() {
    let limiter = Limiter::new(MemoryStore::new(), policy(POLICY));
    for round in 0..8 {
        let query = query("/search");
        let figures = |outcome: &Outcome<'_, '_>| {
            let statuses = outcome.decision.statuses().iter();
            let counts: Vec<u64> = statuses.map(tollgate::Status::count).collect();
            (outcome.rule().to_owned(), outcome.decision.is_allowed(), counts)
        };
        let explain = |query| {
            block_on(limiter.explain(query, |explanation| figures(explanation.outcome))).unwrap()
        };
        let explained = explain(&query);
        assert_eq!(explained, explain(&query), "explain takes nothing");
        let taken = block_on(limiter.decide(Verb::Take, &query, figures)).unwrap();
        assert_eq!(explained, taken, "round {round}");
    }
}

#[test]
fn reset_clears_the_keys_of_a_query() {
    let limiter = Limiter::new(MemoryStore::new(), policy(POLICY));
    let take = || {
        let query = query("/search");
        block_on(limiter.decide(Verb::Take, &query, |outcome| outcome.decision.remaining()))
            .unwrap()
    };
    assert_eq!((take(), take()), (Some(4), Some(3)));
    block_on(limiter.reset(&query("/search"))).unwrap();
    assert_eq!(take(), Some(4));
}

#[test]
fn too_many_limits_fail_and_take_nothing() {
    let nine = "[1/s, 2/s, 3/s, 4/s, 5/s, 6/s, 7/s, 8/s, 9/s]";
    let text = format!(
        "version: 1\nrules:\n- {{ name: a, limits: {nine}, continue: true }}\n- {{ name: b, limits: {nine} }}\n"
    );
    let limiter = Limiter::new(MemoryStore::new(), policy(&text));
    let error = block_on(limiter.decide(Verb::Take, &query("/"), |_| ())).unwrap_err();
    assert!(matches!(error, LimiterError::Plan(_)) && !error.is_transient());
    assert_eq!(limiter.store().occupancy().keys, 0);
}
