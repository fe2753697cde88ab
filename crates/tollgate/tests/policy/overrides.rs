//! Overrides: which limits they replace, which they keep, and that usage is kept.

use std::time::Duration;

use tollgate::{
    Algorithm, ClientId, Limiter, ManualClock, MemoryStore, Override, OverrideErrorKind,
    OverrideLimit, OverrideProposal, Overrides, Policy, Query, Request, RuleSelection, Subject,
    Timestamp, Verb,
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
- { name: banned, match: { ip: 192.0.2.0/24 }, limits: [0] }
";

/// A limiter on a memory store with a manual clock.
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

    fn set(&self, client: &Subject, change: Option<Override>) {
        let active = self.limiter.active_policy();
        let overrides = match change {
            Some(new) => active.overrides().with(client, new),
            None => active.overrides().without(client, None),
        };
        self.limiter.set_overrides(&overrides);
    }

    fn propose(&self, new: &Override, selection: &RuleSelection) -> OverrideProposal {
        let client = ClientId::new("c1", "").unwrap();
        client.propose_override(new, selection, &self.limiter.active_policy()).unwrap()
    }

    /// Takes `cost` and returns each limit that applies: name, algorithm, capacity and remaining amount.
    fn take(&self, request: Request<'_>, cost: u64) -> Vec<String> {
        let query = Query::ByPolicy(request.with_cost(cost));
        let result = self.limiter.decide(Verb::Take, &query, |outcome| {
            let statuses = outcome.decision.statuses().iter();
            let lines = statuses.map(|status| {
                let limit = status.limit();
                let (rule, name, algorithm) = (limit.rule(), limit.name(), limit.algorithm());
                format!("{rule}/{name} {algorithm} {}: {}", limit.capacity(), status.remaining())
            });
            lines.collect()
        });
        block_on(result).unwrap()
    }

    fn on(&self, path: &str, cost: u64) -> Vec<String> {
        self.take(request(&[("client", "c1"), ("path", path), ("page", "p"), ("ip", "::1")]), cost)
    }
}

fn c1() -> Subject {
    Subject::of(["c1"])
}

fn override_of(limits: impl IntoIterator<Item = OverrideLimit>) -> Override {
    Override::new(limits.into_iter().collect()).unwrap()
}

#[test]
fn override_without_a_rule_changes_every_rule_per_client_except_blocks() {
    let fixture = Fixture::new();
    let stored_by_an_earlier_version =
        r#"{"version":1,"limits":[{"limit":20,"window_us":60000000}]}"#;
    fixture.set(&c1(), Some(Override::from_text(stored_by_an_earlier_version).unwrap()));
    assert_eq!(
        fixture.on("/api", 1),
        ["api/60s token_bucket 20: 19", "api/3600s token_bucket 100: 99"]
    );
    let banned = request(&[("client", "c1"), ("ip", "192.0.2.1")]);
    assert_eq!(fixture.take(banned, 1), ["banned/block block 0: 0"]);
    assert_eq!(fixture.on("/pages", 1), ["pages/60s sliding_window 20: 19"]);
    assert_eq!(fixture.on("/other", 1), ["default/60s sliding_window 20: 19"]);
    assert_eq!(fixture.on("/site", 1), ["site/60s sliding_window 10: 9"]);
    assert_eq!(fixture.on("/free", 1), [""; 0]);
    let other_client = request(&[("client", "c2"), ("path", "/other")]);
    assert_eq!(fixture.take(other_client, 1), ["default/60s sliding_window 100: 99"]);
    let anonymous = request(&[("path", "/other")]);
    assert_eq!(fixture.take(anonymous, 1), ["default/60s sliding_window 100: 99"]);
    fixture.set(&c1(), None);
    assert_eq!(fixture.on("/other", 1), ["default/60s sliding_window 100: 98"]);
}

#[test]
fn override_with_a_rule_changes_only_that_rule() {
    let fixture = Fixture::new();
    let named = override_of([OverrideLimit::new(20, MINUTE)]).for_rule("pages");
    fixture.set(&c1(), Some(named.clone()));
    assert_eq!(fixture.on("/pages", 1), ["pages/60s sliding_window 20: 19"]);
    assert_eq!(fixture.on("/other", 1), ["default/60s sliding_window 100: 99"]);
    assert_eq!(named.applies_to(&rules(RULES)).unwrap(), ["pages"]);
}

#[test]
fn clients_of_different_tenants_are_separate() {
    let fixture = Fixture::new();
    fixture.set(
        &Subject::in_tenant("acme", ["c1"]),
        Some(override_of([OverrideLimit::new(1, MINUTE)])),
    );
    assert_eq!(fixture.on("/other", 1), ["default/60s sliding_window 100: 99"]);
    let acme = request(&[("client", "c1"), ("tenant", "acme")]);
    assert_eq!(fixture.take(acme, 1), ["default/60s sliding_window 1: 0"]);
}

#[test]
fn usage_is_kept_when_a_window_limit_changes() {
    let fixture = Fixture::new();
    assert_eq!(fixture.on("/pages", 10), ["pages/60s sliding_window 10: 0"]);
    fixture.set(&c1(), Some(override_of([OverrideLimit::new(20, MINUTE)])));
    assert_eq!(
        fixture.on("/pages", 0),
        ["pages/60s sliding_window 20: 10"],
        "10 of 20 remain after using 10 of 10"
    );
    assert_eq!(fixture.on("/pages", 5), ["pages/60s sliding_window 20: 5"]);
    fixture.set(&c1(), None);
    assert_eq!(fixture.on("/pages", 1), ["pages/60s sliding_window 10: 0"], "no free refill");
    fixture.clock.advance(MINUTE);
    assert_eq!(fixture.on("/pages", 0), ["pages/60s sliding_window 10: 10"]);
}

#[test]
fn used_share_of_a_bucket_is_kept() {
    let fixture = Fixture::new();
    assert_eq!(fixture.on("/api", 5)[0], "api/60s token_bucket 10: 5");
    fixture.set(
        &c1(),
        Some(override_of([OverrideLimit::new(20, MINUTE), OverrideLimit::new(1000, HOUR)])),
    );
    assert_eq!(
        fixture.on("/api", 0),
        ["api/60s token_bucket 20: 10", "api/3600s token_bucket 1000: 950"]
    );
}

#[test]
fn limits_inherit_algorithm_and_name_by_window() {
    let fixture = Fixture::new();
    let limits =
        [OverrideLimit::new(20, DAY), OverrideLimit::new(5, Duration::from_secs(1)).burst(3)];
    fixture.set(&c1(), Some(override_of(limits)));
    // A calendar-aligned window stays aligned; a window that the rule does not have is a token bucket.
    assert_eq!(
        fixture.on("/daily", 1),
        ["daily/86400s fixed_window 20: 19", "daily/1s token_bucket 3: 2"]
    );
    let fixed = OverrideLimit::new(7, MINUTE).with_algorithm(Algorithm::FixedWindow);
    fixture.set(&c1(), Some(override_of([fixed])));
    assert_eq!(fixture.on("/pages", 1), ["pages/60s fixed_window 7: 6"]);
    fixture.set(&c1(), Some(override_of([OverrideLimit::new(9, HOUR).named("60s")])));
    assert_eq!(fixture.on("/other", 1), ["default/60s sliding_window 9: 8"]);
}

#[test]
fn limits_that_an_entry_does_not_replace_stay_unless_only() {
    let fixture = Fixture::new();
    let raised = override_of([OverrideLimit::new(50, MINUTE)]).for_rule("api");
    fixture.set(&c1(), Some(raised.clone()));
    let kept = ["api/60s token_bucket 50: 49", "api/3600s token_bucket 100: 99"];
    assert_eq!(fixture.on("/api", 1), kept);
    fixture.set(&c1(), Some(raised.only()));
    assert_eq!(fixture.on("/api", 1), ["api/60s token_bucket 50: 48"]);
    // An entry with another window is an additional token bucket.
    let additional = override_of([OverrideLimit::new(5, Duration::from_secs(1))]).for_rule("pages");
    fixture.set(&c1(), Some(additional));
    assert_eq!(
        fixture.on("/pages", 1),
        ["pages/1s token_bucket 5: 4", "pages/60s sliding_window 10: 9"]
    );
    assert_eq!(fixture.on("/api", 1), ["api/60s token_bucket 50: 47"], "each rule has its own");
}

#[test]
fn block_is_replaced_only_by_name() {
    let fixture = Fixture::new();
    let raised = || override_of([OverrideLimit::new(100, MINUTE)]);
    let all = fixture.propose(&raised(), &RuleSelection::All);
    assert_eq!(all.rules(), ["api", "pages", "jobs", "daily", "default"]);
    let by_name = fixture.propose(&raised(), &RuleSelection::Named("banned".to_owned()));
    assert_eq!(texts(&by_name), ["banned/60s blocked -> 100/min"]);
    fixture.set(&c1(), Some(by_name.overrides[0].clone()));
    let banned = request(&[("client", "c1"), ("ip", "192.0.2.1")]);
    assert_eq!(fixture.take(banned, 1), ["banned/60s token_bucket 100: 99"]);

    let only_a_block = Limiter::new(MemoryStore::new(), rules("- { name: all, limits: [0] }"));
    let (client, active) = (ClientId::new("c1", "").unwrap(), only_a_block.active_policy());
    for selection in [RuleSelection::Unambiguous, RuleSelection::All] {
        let error = client.propose_override(&raised(), &selection, &active).unwrap_err();
        assert_eq!(error.kind(), OverrideErrorKind::Rule);
        assert!(error.candidates()[0].blocks, "{error}");
    }
}

#[test]
fn ambiguous_override_lists_the_candidates() {
    let fixture = Fixture::new();
    let (client, active) = (ClientId::new("c1", "").unwrap(), fixture.limiter.active_policy());
    let propose =
        |new: Override| client.propose_override(&new, &RuleSelection::Unambiguous, &active);
    let error = propose(override_of([OverrideLimit::new(20, MINUTE)])).unwrap_err();
    assert_eq!(error.kind(), OverrideErrorKind::Rule);
    let candidates = error.candidates().iter().map(|candidate| {
        let limits: Vec<String> = candidate.limits.iter().map(ToString::to_string).collect();
        format!("{} {} {}", candidate.rule, limits.join(" "), candidate.blocks)
    });
    let expected = [
        "api 10/min 100/h false",
        "pages 10/min false",
        "jobs 2 concurrent 10/min false",
        "daily 10/d false",
        "banned blocked true",
        "default 100/min false",
    ];
    assert!(candidates.eq(expected), "{error:?}");
    // Only one rule has slots.
    assert_eq!(propose(override_of([OverrideLimit::slots(5)])).unwrap().rules(), ["jobs"]);
}

#[test]
fn candidates_are_the_rules_that_can_apply_to_the_client() {
    let candidates = |text: &str| {
        let client = ClientId::new("c1", "").unwrap();
        client.overridable_rules(&rules(text)).join(" ")
    };
    let api = "- { name: api, match: { path: /api }, limits: [1/s] }";
    assert_eq!(candidates(api), "api default");
    let all = "- { name: all, per: [], limits: [9/s], continue: true }";
    assert_eq!(
        candidates(&format!("{all}\n{api}")),
        "api",
        "the default applies if no rule matches"
    );
    let vip = "- { name: vip, match: { client: [c1] }, limits: [9/s] }";
    assert_eq!(candidates(&format!("{vip}\n{api}")), "vip");
    let others = "- { name: others, unless: { client: [c1] }, limits: [9/s] }";
    assert_eq!(candidates(&format!("{others}\n{api}")), "api default");
    let users = "- { name: users, per: [user], missing: skip, limits: [9/s] }";
    assert_eq!(candidates(&format!("{users}\n{api}")), "api default");
}

/// Returns the changes of a proposal as `rule/limit before -> after`, then the kept limits.
fn texts(proposal: &OverrideProposal) -> Vec<String> {
    let changes = proposal.replaces.iter().map(|change| {
        let text = |limit: &Option<tollgate::Limit>| {
            limit.as_ref().map_or("none".to_owned(), ToString::to_string)
        };
        let (before, after) = (text(&change.before), text(&change.after));
        format!("{}/{} {before} -> {after}", change.rule, change.name)
    });
    let keeps = proposal.keeps.iter();
    changes.chain(keeps.map(|limit| format!("{} {limit}", limit.name()))).collect()
}

#[test]
fn proposal_compares_with_what_applies_now() {
    let fixture = Fixture::new();
    let api = RuleSelection::Named("api".to_owned());
    let raised = || override_of([OverrideLimit::new(50, MINUTE)]);
    let first = fixture.propose(&raised(), &api);
    assert_eq!(texts(&first), ["api/60s 10/min -> 50/min", "3600s 100/h"]);
    let only = fixture.propose(&raised().only(), &api);
    assert_eq!(texts(&only), ["api/60s 10/min -> 50/min", "api/3600s 100/h -> none"]);
    fixture.set(&c1(), Some(only.overrides[0].clone()));
    let hourly = override_of([OverrideLimit::new(500, HOUR), OverrideLimit::new(9, DAY)]);
    let second = fixture.propose(&hourly, &api);
    let expected =
        ["api/3600s none -> 500/h", "api/86400s none -> 9/d", "api/60s 50/min -> 10/min"];
    assert_eq!(texts(&second), expected, "the stored override is replaced as a whole");
    assert_eq!(fixture.limiter.active_policy().overrides().len(), 1, "nothing is stored");
}

#[test]
fn override_of_a_rule_precedes_one_without_a_rule() {
    let fixture = Fixture::new();
    fixture.set(&c1(), Some(override_of([OverrideLimit::new(20, MINUTE)])));
    fixture.set(&c1(), Some(override_of([OverrideLimit::new(30, MINUTE)]).for_rule("pages")));
    assert_eq!(fixture.on("/pages", 1), ["pages/60s sliding_window 30: 29"]);
    assert_eq!(fixture.on("/other", 1), ["default/60s sliding_window 20: 19"]);
    let (policy, active) = (rules(RULES), fixture.limiter.active_policy());
    let all = active.overrides().get(&c1());
    assert_eq!(all[0].effect_among(all, &policy).rules, ["api", "jobs", "daily", "default"]);
    assert_eq!(all[1].effect_among(all, &policy).rules, ["pages"]);
    fixture.limiter.set_overrides(&active.overrides().without(&c1(), Some("pages")));
    assert_eq!(fixture.on("/pages", 1), ["pages/60s sliding_window 20: 18"]);
}

#[test]
fn slots_change_only_rules_with_concurrency_limits() {
    let fixture = Fixture::new();
    fixture.set(&c1(), Some(override_of([OverrideLimit::slots(5)])));
    assert_eq!(
        fixture.on("/jobs", 1),
        ["jobs/concurrency concurrency 5: 4", "jobs/60s sliding_window 10: 9"]
    );
    assert_eq!(fixture.on("/other", 1), ["default/60s sliding_window 100: 99"]);
    assert_eq!(override_of([OverrideLimit::slots(5)]).applies_to(&rules(RULES)).unwrap(), ["jobs"]);
    fixture.set(&c1(), Some(override_of([OverrideLimit::new(20, MINUTE)])));
    assert_eq!(
        fixture.on("/jobs", 0),
        ["jobs/60s sliding_window 20: 19", "jobs/concurrency concurrency 2: 1"],
        "the slots stay"
    );
}

#[test]
fn limit_of_zero_blocks_the_client() {
    let fixture = Fixture::new();
    fixture.set(&c1(), Some(override_of([OverrideLimit::new(0, MINUTE)])));
    assert_eq!(fixture.on("/other", 1), ["default/60s block 0: 0"]);
    fixture.set(&c1(), None);
    assert_eq!(fixture.on("/other", 1), ["default/60s sliding_window 100: 99"]);
}

#[test]
fn overrides_survive_a_policy_change() {
    let fixture = Fixture::new();
    fixture.set(&c1(), Some(override_of([OverrideLimit::new(20, MINUTE)])));
    // Fills the cache of the first rule, which is a different rule in the new policy.
    fixture.on("/api", 1);
    fixture.limiter.set_policy(rules("- { name: all, limits: [3/min] }"));
    assert_eq!(fixture.on("/other", 1), ["all/60s sliding_window 20: 19"]);
}

#[test]
fn stored_subjects_resolve_to_override_limits() {
    let fixture = Fixture::new();
    fixture.set(&c1(), Some(override_of([OverrideLimit::new(20, MINUTE)])));
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
fn rejects_overrides_that_cannot_apply() {
    let policy = rules(RULES);
    let for_rule = |rule: &str| override_of([OverrideLimit::new(1, DAY)]).for_rule(rule);
    let rejection = |invalid: Override, policy: &Policy| {
        let error = invalid.applies_to(policy).unwrap_err();
        (error.kind(), error.to_string())
    };
    let (kind, message) = rejection(for_rule("apy"), &policy);
    assert_eq!(kind, OverrideErrorKind::Rule);
    assert!(
        message.starts_with("unknown rule \"apy\" (rules of the policy: api, pages"),
        "{message}"
    );
    let (kind, message) = rejection(for_rule("site"), &policy);
    assert_eq!(kind, OverrideErrorKind::Rule);
    assert_eq!(message, "rule \"site\" does not count per client; name a rule with client in per");
    let (kind, message) =
        rejection(override_of([OverrideLimit::slots(1)]), &rules("- { name: all, limits: [1/s] }"));
    assert_eq!(kind, OverrideErrorKind::Limits);
    assert_eq!(message, "the override would not change any rule of the policy");
    let many = override_of([OverrideLimit::new(1, HOUR), OverrideLimit::new(1_000_000, MINUTE)]);
    let (kind, message) = rejection(many, &policy);
    assert_eq!(kind, OverrideErrorKind::Limit { index: 1 });
    assert!(message.ends_with("(in rule \"pages\")"), "{message}");
    let burst = override_of([OverrideLimit::new(1, MINUTE).burst(2)]);
    assert_eq!(rejection(burst, &policy).0, OverrideErrorKind::Limit { index: 0 });

    let duplicate =
        Override::new(vec![OverrideLimit::new(1, DAY), OverrideLimit::new(2, DAY)]).unwrap_err();
    assert_eq!(duplicate.kind(), OverrideErrorKind::Limit { index: 1 });
    let nine = (1..=9).map(|seconds| OverrideLimit::new(1, Duration::from_secs(seconds)));
    assert_eq!(Override::new(nine.collect()).unwrap_err().kind(), OverrideErrorKind::Limits);
    let trial = Override::new(vec![OverrideLimit::new(1, DAY).named("next.60s")]).unwrap_err();
    assert_eq!(trial.kind(), OverrideErrorKind::Limit { index: 0 });
    // The first replaces the limit `60s` by name, the second by window.
    let same =
        override_of([OverrideLimit::new(1, HOUR).named("60s"), OverrideLimit::new(1, MINUTE)]);
    assert_eq!(rejection(same, &policy).0, OverrideErrorKind::Limit { index: 1 });
}

#[test]
fn invalid_limits_leave_a_rule_unchanged() {
    let fixture = Fixture::new();
    fixture.set(&c1(), Some(override_of([OverrideLimit::new(1_000_000, MINUTE)])));
    assert_eq!(fixture.on("/pages", 1), ["pages/60s sliding_window 10: 9"]);
    assert_eq!(fixture.on("/api", 1)[0], "api/60s token_bucket 1000000: 999999");
    let policy = rules(RULES);
    let effect = override_of([OverrideLimit::new(1_000_000, MINUTE)]).effect(&policy);
    assert_eq!(effect.rules, ["api", "daily"], "the effect lists the changed rules only");
    assert!(effect.problem.is_some());
}

#[test]
fn overrides_expire_and_are_sorted_by_client() {
    let at = Timestamp::from_micros;
    let until =
        |expiry| override_of([OverrideLimit::new(1, MINUTE)]).valid(at(0), Some(at(expiry)));
    let all: Overrides = [
        (Subject::of(["b"]), until(20)),
        (Subject::of(["a"]), until(10)),
        (Subject::of(["c"]), override_of([OverrideLimit::new(1, MINUTE)])),
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

#[test]
fn replaces_a_limit_with_a_numbered_default_name() {
    let policy = rules("- { name: api, limits: [10/min, 5/min] }");
    for count in [0, 7] {
        let limit = OverrideLimit::new(count, MINUTE).named("60s#2");
        let override_ = override_of([limit]).for_rule("api");
        assert_eq!(override_.applies_to(&policy).unwrap(), ["api"], "{count}");
    }
}

#[test]
fn rejects_what_the_algorithm_does_not_support() {
    let policy = rules(RULES);
    for (limit, reason) in [
        (
            OverrideLimit::new(1, MINUTE).with_algorithm(Algorithm::Block),
            "window is not supported by block (in rule \"api\")",
        ),
        (
            OverrideLimit::new(1, MINUTE).with_algorithm(Algorithm::SlidingWindow).burst(2),
            "burst is supported by token_bucket only (in rule \"api\")",
        ),
    ] {
        let error = override_of([limit]).for_rule("api").applies_to(&policy).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}
