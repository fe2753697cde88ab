//! A policy, a store, and one who watches.

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

fn asked(path: &'static str) -> Query<'static> {
    Query::ByPolicy(Request::new(Facts::of([("client", "c1"), ("path", path)]).unwrap()))
}

/// What was asked, the rules that applied, and whether it was allowed.
type Note = (Verb, Vec<String>, Option<bool>);

/// Notes every decision as the observer sees it.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<Note>>);

impl Observer for Notes {
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
fn every_decision_is_seen_once_with_its_rules() {
    let limiter = Limiter::with_observer(MemoryStore::new(), policy(POLICY), Notes::default());
    let decide = |verb, asked: &Query<'_>| block_on(limiter.decide(verb, asked, |_| ())).unwrap();
    decide(Verb::Take, &asked("/search"));
    decide(Verb::Peek, &asked("/"));
    limiter.set_policy(policy("version: 1\ndefaults: { limit: 0 }\n"));
    decide(Verb::Take, &asked("/search"));
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
fn a_new_policy_keeps_what_was_used() {
    let limiter = Limiter::new(MemoryStore::new(), policy(POLICY));
    let left = |limiter: &Limiter<MemoryStore>| {
        let asked = asked("/search");
        block_on(limiter.decide(Verb::Take, &asked, |told| told.decision.remaining())).unwrap()
    };
    assert_eq!((left(&limiter), left(&limiter)), (Some(4), Some(3)));
    let held = limiter.active_policy();
    limiter.set_policy(policy(&POLICY.replace("5/min", "10/min")));
    assert_eq!(left(&limiter), Some(7));
    assert_eq!(held.policy().rules()[1].limits()[0].count(), 5, "what is held stays what it was");
}

#[test]
fn an_outcome_names_rule_and_key() {
    let limiter = Limiter::new(MemoryStore::new(), policy(POLICY));
    let named = |asked: &Query<'_>| {
        let tell = |told: &Outcome<'_, '_>| (told.rule().to_owned(), told.key().into_owned());
        block_on(limiter.decide(Verb::Take, asked, tell)).unwrap()
    };
    assert_eq!(named(&asked("/search")), ("search".to_owned(), "c1".to_owned()));
    assert_eq!(named(&asked("/")), ("everyone".to_owned(), "*".to_owned()));
}

#[test]
fn permits_are_given_released_and_renewed() {
    let clock = ManualClock::new();
    let store = MemoryStore::builder().clock(clock.clone()).build();
    let limiter = Limiter::new(store, policy(POLICY));
    let take = |verb| {
        let tell = |told: &Outcome<'_, '_>| (told.permit.clone(), told.expires_at);
        block_on(limiter.decide(verb, &asked("/jobs"), tell)).unwrap()
    };
    assert_eq!(take(Verb::Peek), (None, None), "who only asks holds nothing");
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
fn what_is_explained_is_what_happens_and_nothing_is_taken() {
    let limiter = Limiter::new(MemoryStore::new(), policy(POLICY));
    for round in 0..8 {
        let asked = asked("/search");
        let figures = |outcome: &Outcome<'_, '_>| {
            let statuses = outcome.decision.statuses().iter();
            let counts: Vec<u64> = statuses.map(tollgate::Status::count).collect();
            (outcome.rule().to_owned(), outcome.decision.is_allowed(), counts)
        };
        let explained =
            |asked| block_on(limiter.explain(asked, |told| figures(told.outcome))).unwrap();
        let told = explained(&asked);
        assert_eq!(told, explained(&asked), "explaining takes nothing");
        let seen = block_on(limiter.decide(Verb::Take, &asked, figures)).unwrap();
        assert_eq!(told, seen, "round {round}");
    }
}

#[test]
fn a_reset_forgets_the_counters_of_a_request() {
    let limiter = Limiter::new(MemoryStore::new(), policy(POLICY));
    let take = || {
        let asked = asked("/search");
        block_on(limiter.decide(Verb::Take, &asked, |told| told.decision.remaining())).unwrap()
    };
    assert_eq!((take(), take()), (Some(4), Some(3)));
    block_on(limiter.reset(&asked("/search"))).unwrap();
    assert_eq!(take(), Some(4));
}

#[test]
fn too_many_limits_are_an_error_and_take_nothing() {
    let nine = "[1/s, 2/s, 3/s, 4/s, 5/s, 6/s, 7/s, 8/s, 9/s]";
    let text = format!(
        "version: 1\nrules:\n- {{ name: a, limits: {nine}, continue: true }}\n- {{ name: b, limits: {nine} }}\n"
    );
    let limiter = Limiter::new(MemoryStore::new(), policy(&text));
    let error = block_on(limiter.decide(Verb::Take, &asked("/"), |_| ())).unwrap_err();
    assert!(matches!(error, LimiterError::Plan(_)) && !error.is_transient());
    assert_eq!(limiter.store().occupancy().keys, 0);
}
