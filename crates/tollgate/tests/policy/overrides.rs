//! Exceptions for one client: what they replace, what they leave, and what stays used.

use std::time::Duration;

use tollgate::{
    Algorithm, Limiter, ManualClock, MemoryStore, Override, OverrideErrorKind, OverrideLimit,
    Overrides, Policy, Query, Request, Subject, Timestamp, Verb,
};
use tollgate_testkit::runtime::block_on;

use super::helpers::{request, rules};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

const RULES: &str = "
- { name: api, match: { path: /api }, per: [client], limits: [10/min, 100/h], algorithm: token_bucket }
- { name: pages, match: { path: /pages }, per: [client, page], limits: [10/min] }
- { name: site, match: { path: /site }, per: [ip], limits: [10/min] }
- { name: free, match: { path: /free }, unlimited: true }
- { name: jobs, match: { path: /jobs }, limits: [{ concurrency: 2, ttl: 30s }, 10/min] }
- { name: daily, match: { path: /daily }, limits: [{ rate: 10/d, align: day, tz: Europe/Berlin }] }
";

/// A limiter of memory on a clock that stands still.
struct Fixture {
    limiter: Limiter<MemoryStore<ManualClock>>,
    clock: ManualClock,
}

impl Fixture {
    fn new() -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000));
        let store = MemoryStore::builder().clock(clock.clone()).build();
        Self { limiter: Limiter::new(store, rules(RULES)), clock }
    }

    fn set(&self, client: &Subject, own: Option<Override>) {
        let overrides = self.limiter.active_policy().overrides().with(client, own);
        self.limiter.set_overrides(&overrides);
    }

    /// Each limit that applies, as its name, its algorithm, its numbers and what is left after taking so much.
    fn take(&self, request: Request<'_>, cost: u64) -> Vec<String> {
        let asked = Query::ByPolicy(request.with_cost(cost));
        let told = self.limiter.decide(Verb::Take, &asked, |outcome| {
            let statuses = outcome.decision.statuses().iter();
            let told = statuses.map(|status| {
                let limit = status.limit();
                let (rule, name, algorithm) = (limit.rule(), limit.name(), limit.algorithm());
                format!("{rule}/{name} {algorithm} {}: {}", limit.capacity(), status.remaining())
            });
            told.collect()
        });
        block_on(told).unwrap()
    }

    fn on(&self, path: &str, cost: u64) -> Vec<String> {
        self.take(request(&[("client", "c1"), ("path", path), ("page", "p"), ("ip", "::1")]), cost)
    }
}

fn c1() -> Subject {
    Subject::of(["c1"])
}

fn own(limits: impl IntoIterator<Item = OverrideLimit>) -> Override {
    Override::new(limits.into_iter().collect()).unwrap()
}

#[test]
fn every_rule_per_client_and_the_default_are_changed_and_no_other() {
    let fixture = Fixture::new();
    fixture.set(&c1(), Some(own([OverrideLimit::new(20, MINUTE)])));
    assert_eq!(fixture.on("/api", 1), ["api/60s token_bucket 20: 19"]);
    assert_eq!(fixture.on("/pages", 1), ["pages/60s sliding_window 20: 19"]);
    assert_eq!(fixture.on("/other", 1), ["default/60s sliding_window 20: 19"]);
    assert_eq!(fixture.on("/site", 1), ["site/60s sliding_window 10: 9"]);
    assert_eq!(fixture.on("/free", 1), [""; 0]);
    let another = request(&[("client", "c2"), ("path", "/other")]);
    assert_eq!(fixture.take(another, 1), ["default/60s sliding_window 100: 99"]);
    let nobody = request(&[("path", "/other")]);
    assert_eq!(fixture.take(nobody, 1), ["default/60s sliding_window 100: 99"]);
    fixture.set(&c1(), None);
    assert_eq!(fixture.on("/other", 1), ["default/60s sliding_window 100: 98"]);
}

#[test]
fn one_that_names_a_rule_leaves_the_others() {
    let fixture = Fixture::new();
    let named = own([OverrideLimit::new(20, MINUTE)]).for_rule("pages");
    fixture.set(&c1(), Some(named.clone()));
    assert_eq!(fixture.on("/pages", 1), ["pages/60s sliding_window 20: 19"]);
    assert_eq!(fixture.on("/other", 1), ["default/60s sliding_window 100: 99"]);
    assert_eq!(named.applies_to(&rules(RULES)).unwrap(), ["pages"]);
}

#[test]
fn a_client_of_another_tenant_is_another() {
    let fixture = Fixture::new();
    fixture.set(&Subject::in_tenant("acme", ["c1"]), Some(own([OverrideLimit::new(1, MINUTE)])));
    assert_eq!(fixture.on("/other", 1), ["default/60s sliding_window 100: 99"]);
    let acme = request(&[("client", "c1"), ("tenant", "acme")]);
    assert_eq!(fixture.take(acme, 1), ["default/60s sliding_window 1: 0"]);
}

#[test]
fn what_was_used_stays_used_up_and_down_and_back() {
    let fixture = Fixture::new();
    assert_eq!(fixture.on("/pages", 10), ["pages/60s sliding_window 10: 0"]);
    fixture.set(&c1(), Some(own([OverrideLimit::new(20, MINUTE)])));
    assert_eq!(
        fixture.on("/pages", 0),
        ["pages/60s sliding_window 20: 10"],
        "10 of 10 leaves 10 of 20"
    );
    assert_eq!(fixture.on("/pages", 5), ["pages/60s sliding_window 20: 5"]);
    fixture.set(&c1(), None);
    assert_eq!(fixture.on("/pages", 1), ["pages/60s sliding_window 10: 0"], "no free refill");
    fixture.clock.advance(MINUTE);
    assert_eq!(fixture.on("/pages", 0), ["pages/60s sliding_window 10: 10"]);
}

#[test]
fn of_a_bucket_the_used_share_stays_used() {
    let fixture = Fixture::new();
    assert_eq!(fixture.on("/api", 5)[0], "api/60s token_bucket 10: 5");
    fixture.set(&c1(), Some(own([OverrideLimit::new(20, MINUTE), OverrideLimit::new(1000, HOUR)])));
    assert_eq!(
        fixture.on("/api", 0),
        ["api/60s token_bucket 20: 10", "api/3600s token_bucket 1000: 950"]
    );
}

#[test]
fn entries_take_algorithm_and_name_from_the_limit_with_their_window() {
    let fixture = Fixture::new();
    let limits =
        [OverrideLimit::new(20, DAY), OverrideLimit::new(5, Duration::from_secs(1)).burst(3)];
    fixture.set(&c1(), Some(own(limits)));
    // A window of the calendar stays one; a window that the rule has not is a bucket's.
    assert_eq!(
        fixture.on("/daily", 1),
        ["daily/86400s fixed_window 20: 19", "daily/1s token_bucket 3: 2"]
    );
    let told = OverrideLimit::new(7, MINUTE).with_algorithm(Algorithm::FixedWindow);
    fixture.set(&c1(), Some(own([told])));
    assert_eq!(fixture.on("/pages", 1), ["pages/60s fixed_window 7: 6"]);
    fixture.set(&c1(), Some(own([OverrideLimit::new(9, HOUR).named("60s")])));
    assert_eq!(fixture.on("/other", 1), ["default/60s sliding_window 9: 8"]);
}

#[test]
fn slots_change_where_there_are_some() {
    let fixture = Fixture::new();
    fixture.set(&c1(), Some(own([OverrideLimit::slots(5)])));
    assert_eq!(
        fixture.on("/jobs", 1),
        ["jobs/concurrency concurrency 5: 4", "jobs/60s sliding_window 10: 9"]
    );
    assert_eq!(fixture.on("/other", 1), ["default/60s sliding_window 100: 99"]);
    assert_eq!(own([OverrideLimit::slots(5)]).applies_to(&rules(RULES)).unwrap(), ["jobs"]);
    fixture.set(&c1(), Some(own([OverrideLimit::new(20, MINUTE)])));
    assert_eq!(
        fixture.on("/jobs", 0),
        ["jobs/60s sliding_window 20: 19", "jobs/concurrency concurrency 2: 1"],
        "rates replace rates"
    );
}

#[test]
fn nothing_passes_a_limit_of_zero() {
    let fixture = Fixture::new();
    fixture.set(&c1(), Some(own([OverrideLimit::new(0, MINUTE)])));
    assert_eq!(fixture.on("/other", 1), ["default/60s block 0: 0"]);
    fixture.set(&c1(), None);
    assert_eq!(fixture.on("/other", 1), ["default/60s sliding_window 100: 99"]);
}

#[test]
fn another_policy_keeps_the_overrides() {
    let fixture = Fixture::new();
    fixture.set(&c1(), Some(own([OverrideLimit::new(20, MINUTE)])));
    // The first rule of the one policy is not that of the other.
    fixture.on("/api", 1);
    fixture.limiter.set_policy(rules("- { name: all, limits: [3/min] }"));
    assert_eq!(fixture.on("/other", 1), ["all/60s sliding_window 20: 19"]);
}

#[test]
fn counters_are_listed_with_their_clients_own_limits() {
    let fixture = Fixture::new();
    fixture.set(&c1(), Some(own([OverrideLimit::new(20, MINUTE)])));
    let current = fixture.limiter.active_policy();
    let count = |subject: &Subject, rule: &str| {
        let limit = current.limit(subject, rule, "60s", Algorithm::SlidingWindow);
        limit.map(|limit| limit.count())
    };
    assert_eq!(count(&c1(), "default"), Some(20));
    assert_eq!(count(&Subject::of(["c2"]), "default"), Some(100));
    assert_eq!(count(&Subject::of(["c1", "p"]), "pages"), Some(20));
    assert_eq!(count(&Subject::of(["p", "c1"]), "pages"), Some(10));
    assert_eq!(count(&c1(), "gone"), None);
}

#[test]
fn what_cannot_be_in_force_is_refused_with_the_reason() {
    let policy = rules(RULES);
    let of_rule = |rule: &str| own([OverrideLimit::new(1, DAY)]).for_rule(rule);
    let refused = |own: Override, policy: &Policy| {
        let error = own.applies_to(policy).unwrap_err();
        (error.kind(), error.to_string())
    };
    let (kind, told) = refused(of_rule("apy"), &policy);
    assert_eq!(kind, OverrideErrorKind::Rule);
    assert!(told.starts_with("no rule is called \"apy\"; there are api, pages"), "{told}");
    let (kind, told) = refused(of_rule("site"), &policy);
    assert_eq!((kind, &*told), (OverrideErrorKind::Rule, "rule \"site\" is not keyed per client"));
    let (kind, told) =
        refused(own([OverrideLimit::slots(1)]), &rules("- { name: all, limits: [1/s] }"));
    assert_eq!(kind, OverrideErrorKind::Limits);
    assert_eq!(told, "no rule of the policy would be changed by it");
    let many = own([OverrideLimit::new(1, HOUR), OverrideLimit::new(1_000_000, MINUTE)]);
    let (kind, told) = refused(many, &policy);
    assert_eq!(kind, OverrideErrorKind::Limit { place: 1 });
    assert!(told.contains("as rule pages counts"), "{told}");
    let burst = own([OverrideLimit::new(1, MINUTE).burst(2)]);
    assert_eq!(refused(burst, &policy).0, OverrideErrorKind::Limit { place: 0 });

    let twins =
        Override::new(vec![OverrideLimit::new(1, DAY), OverrideLimit::new(2, DAY)]).unwrap_err();
    assert_eq!(twins.kind(), OverrideErrorKind::Limit { place: 1 });
    let nine = (1..=9).map(|seconds| OverrideLimit::new(1, Duration::from_secs(seconds)));
    assert_eq!(Override::new(nine.collect()).unwrap_err().kind(), OverrideErrorKind::Limits);
    let trial = Override::new(vec![OverrideLimit::new(1, DAY).named("next.60s")]).unwrap_err();
    assert_eq!(trial.kind(), OverrideErrorKind::Limit { place: 0 });
    // The name of one and the window of the other are of the same limit.
    let same = own([OverrideLimit::new(1, HOUR).named("60s"), OverrideLimit::new(1, MINUTE)]);
    assert_eq!(refused(same, &policy).0, OverrideErrorKind::Limit { place: 1 });
}

#[test]
fn what_a_rule_cannot_count_leaves_the_rule_as_it_is() {
    let fixture = Fixture::new();
    fixture.set(&c1(), Some(own([OverrideLimit::new(1_000_000, MINUTE)])));
    assert_eq!(fixture.on("/pages", 1), ["pages/60s sliding_window 10: 9"]);
    assert_eq!(fixture.on("/api", 1), ["api/60s token_bucket 1000000: 999999"]);
    let policy = rules(RULES);
    let effect = own([OverrideLimit::new(1_000_000, MINUTE)]).effect(&policy);
    assert_eq!(effect.rules, ["api", "daily"], "what is told is what is in force");
    assert!(effect.problem.is_some());
}

#[test]
fn overrides_end_and_are_told_in_order() {
    let at = Timestamp::from_micros;
    let until = |end| own([OverrideLimit::new(1, MINUTE)]).valid(at(0), Some(at(end)));
    let all: Overrides = [
        (Subject::of(["b"]), until(20)),
        (Subject::of(["a"]), until(10)),
        (Subject::of(["c"]), own([OverrideLimit::new(1, MINUTE)])),
    ]
    .into_iter()
    .collect();
    assert_eq!((all.len(), all.next_expiry()), (3, Some(at(10))));
    let names = |all: &Overrides, after: &str| -> Vec<String> {
        all.after(after).map(|(client, _)| client.to_owned()).collect()
    };
    assert_eq!(names(&all, ""), [":a", ":b", ":c"]);
    assert_eq!(names(&all, ":a"), [":b", ":c"]);
    assert_eq!(names(&all.without_expired(at(9)), ""), [":a", ":b", ":c"]);
    assert_eq!(names(&all.without_expired(at(10)), ""), [":b", ":c"]);
    assert_eq!(all.without_expired(at(20)).next_expiry(), None);
}
