//! The index finds the same rules as trying all rules in order.

use std::fmt::Write as _;

use proptest::prelude::*;
use tollgate::{Facts, Limit, Policy, Request};

/// Values and patterns of a fact, with few different characters so that many match.
fn values(fact: &'static str) -> BoxedStrategy<String> {
    let one = match fact {
        "path" => "(/(a|b|\\*|a\\*|\\{id\\}|\\*\\*)){1,3}".boxed(),
        "ip" => prop::sample::select(vec![
            "10.0.0.0/8",
            "10.0.0.0/31",
            "10.0.0.1",
            "::ffff:10.0.0.0/127",
            "::/0",
            "2001:db8::/32",
            "2001:db8::/80",
            "2001:db8::1",
            "0.0.0.0/0",
        ])
        .prop_map(str::to_owned)
        .boxed(),
        "method" => "(get|PUT|P\\*)".boxed(),
        "descriptor" => "(a|b|%2F)=(a|b|\\*|a\\*|\\*2F)(/((a|\\*)=(a|\\*)|\\*\\*)){0,2}".boxed(),
        _ => "[ab*]{1,3}".boxed(),
    };
    let list = prop::collection::vec(one, 1..3);
    list.prop_map(|list| format!("['{}']", list.join("', '"))).boxed()
}

const FACTS: [&str; 7] = ["path", "ip", "method", "client", "user", "tenant", "descriptor"];

fn rule() -> impl Strategy<Value = String> {
    let condition = |fact: &'static str| prop::option::weighted(0.4, values(fact));
    let conditions = FACTS.map(condition);
    let rest = (prop::bool::weighted(0.3), prop::sample::select(vec!["share", "skip", "deny"]));
    let unless = prop::option::weighted(0.2, values("path"));
    (conditions, unless, rest).prop_map(|(conditions, unless, (continues, missing))| {
        let mut text = "match: { facts: {".to_owned();
        for (fact, condition) in FACTS.iter().zip(conditions) {
            if let Some(values) = condition {
                write!(text, " {fact}: {values},").unwrap();
            }
        }
        text.push_str(" } }");
        if let Some(values) = unless {
            write!(text, ", unless: {{ path: {values} }}").unwrap();
        }
        format!("{text}, continue: {continues}, missing: {missing}, per: [user], limits: [1/s]")
    })
}

fn policy() -> impl Strategy<Value = Policy> {
    prop::collection::vec(rule(), 1..20).prop_map(|rules| {
        let mut text = "version: 1\nrules:\n".to_owned();
        for (n, rule) in rules.iter().enumerate() {
            writeln!(text, "- {{ name: r{n}, {rule} }}").unwrap();
        }
        let policy = Policy::from_yaml("p.yaml", &text, Limit::block());
        policy.unwrap_or_else(|error| panic!("{error}\n{text}"))
    })
}

fn value(fact: &str) -> BoxedStrategy<String> {
    match fact {
        "path" => "(/(a|b|ab|)){1,4}(\\?x)?".boxed(),
        "ip" => prop::sample::select(vec![
            "10.0.0.1",
            "::ffff:a00:2",
            "10.9.9.9",
            "2001:db8::1",
            "2001:db8::2",
            "2001:db8:0:0:1::1",
            "none",
        ])
        .prop_map(str::to_owned)
        .boxed(),
        "method" => "(GET|put|POST)".boxed(),
        "descriptor" => "(a|b|%2F)=(a|b|ab|%2F|)(/(a|b)=(a|)){0,2}".boxed(),
        _ => "[ab]{1,3}".boxed(),
    }
}

fn facts() -> impl Strategy<Value = Facts<'static>> {
    FACTS.map(|fact| prop::option::weighted(0.8, value(fact))).prop_map(|values| {
        let known = FACTS.iter().zip(values).filter_map(|(fact, value)| Some((*fact, value?)));
        Facts::of(known).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn index_and_sequential_search_agree(
        policy in policy(),
        requests in prop::collection::vec(facts(), 1..20),
    ) {
        for facts in requests {
            let request = Request::new(facts);
            let planned = policy.plan(&request);
            let found: Vec<_> = planned.matched().iter().map(|matched| matched.rule().name()).collect();
            let trace = policy.explain(&request);
            prop_assert_eq!(&found, &trace.matched().collect::<Vec<_>>(), "{}", trace);
        }
    }
}
