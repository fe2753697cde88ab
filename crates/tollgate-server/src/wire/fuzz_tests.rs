//! Fuzz targets of request bodies. `scripts/fuzz json_check` runs one for longer.

use serde_json::Value;
use tollgate::{Query, Request};
use tollgate_testkit::fuzz::Target;

use super::parse::parse;
use super::query;
use super::reservation::{ReserveBody, SettleBody, build_terms};
use super::scalar::{Integer, Text};
use crate::error::{ApiError, ApiErrorKind};

const WORDS: [&str; 40] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "null",
    "true",
    "1.5",
    "1e2",
    "-0",
    "\"key\":\"a\"",
    "\"facts\":{\"client\":\"c\"}",
    "\"tenant\":\"t\"",
    "\"cost\":0",
    "\"costs\":{\"tokens\":1}",
    "\"limits\":[\"1/s\"]",
    "\"limit\":5",
    "\"window_ms\":1000",
    "\"burst\":9",
    "\"name\":\"n\"",
    "\"unit\":\"tokens\"",
    "\"algorithm\":\"fixed_window\"",
    "\"algorithm\":\"concurrency\"",
    "\"align\":\"day\"",
    "\"tz\":\"Europe/Zurich\"",
    "\"ttl_ms\":5000",
    "\"id\":\"i\"",
    "\"reservation\":\"x\"",
    "9007199254740992",
    "\\u0000",
    "\\ud800",
    "\\u00e9",
    "\x7f",
    "\u{feff}",
    "\t",
    " ",
    "\"x\":[[[[{}]]]]",
    "/month",
];

#[test]
fn fuzz_json_check() {
    let mut counts = [0, 0];
    let summary = Target::new("json_check", 2500).dictionary(&WORDS).run(|body| {
        let read = query::read(body);
        counts[usize::from(read.is_ok())] += 1;
        match read {
            Err(error) => refusal(&error, body),
            Ok(query) => {
                let text = describe(&query);
                let value: Value = serde_json::from_slice(body).unwrap();
                for encoded in [value.to_string(), format!(" {value:#}\n")] {
                    assert_eq!(describe(&query::read(encoded.as_bytes()).unwrap()), text);
                }
                let reserve = parse::<ReserveBody<'_>>(body).unwrap().into_parts().unwrap().0;
                assert_eq!(describe(&reserve), text, "a reservation is the same query");
                kind(&query)
            }
        }
    });
    assert!(summary.outcomes > 50, "{summary:?}");
    assert!(counts.iter().all(|count| *count > 10), "refused and accepted: {counts:?}");
}

#[test]
fn fuzz_json_reservation() {
    let target = Target::new("json_reservation", 2500).dictionary(&WORDS);
    let summary = target.run(|body| (reserve(body), settle(body)));
    assert!(summary.outcomes > 50, "{summary:?}");
}

/// Without its own fields, the body of a reservation is that of a check.
fn reserve(body: &[u8]) -> String {
    match parse::<ReserveBody<'_>>(body).and_then(ReserveBody::into_parts) {
        Err(error) => refusal(&error, body),
        Ok((query, terms)) => {
            let mut value: Value = serde_json::from_slice(body).unwrap();
            let fields = value.as_object_mut().unwrap();
            let ttl = fields.remove("ttl_ms").and_then(|ttl| ttl.as_u64()).map(Integer);
            let id = fields.remove("id");
            let id = id.as_ref().and_then(Value::as_str).map(|id| Text(id.into()));
            assert_eq!(build_terms(ttl, id.as_ref()).unwrap(), terms);
            let check = value.to_string();
            assert_eq!(describe(&query::read(check.as_bytes()).unwrap()), describe(&query));
            kind(&query)
        }
    }
}

fn settle(body: &[u8]) -> String {
    match parse::<SettleBody<'_>>(body).and_then(SettleBody::into_settlement) {
        Err(error) => refusal(&error, body),
        Ok(settlement) => {
            let token = settlement.token.to_string();
            assert_eq!(token.parse(), Ok(settlement.token));
            assert!(settlement.tenant().is_none_or(|tenant| !tenant.is_empty()));
            format!("settle {}", settlement.tenant().is_some())
        }
    }
}

/// Returns the field and the kind of an error, whose text must be short, complete and free of control characters.
pub(crate) fn refusal(error: &ApiError, body: &[u8]) -> String {
    assert_eq!(error.kind(), ApiErrorKind::Invalid, "{error}");
    let text = error.to_string();
    assert!(text.len() < 512 + 2 * body.len(), "{text}");
    assert!(!text.ends_with("invalid request body"), "{text}");
    let json: Value = serde_json::from_slice(&error.to_json(None)).unwrap();
    assert!(json.is_object(), "{json}");
    // Positions and quoted texts are no new outcome.
    text.split(['`', '"'])
        .step_by(2)
        .flat_map(str::chars)
        .filter(|char| !char.is_ascii_digit())
        .take(80)
        .collect()
}

/// Describes a query; facts and costs are sorted, because their order in the body has no meaning.
pub(crate) fn describe(query: &Query<'_>) -> String {
    let mut costs: Vec<String> =
        query.costs().iter().map(|(unit, amount)| format!("{unit:?}={amount}")).collect();
    costs.sort_unstable();
    match query {
        Query::ByPolicy(request) => format!("{costs:?} {:?}", facts(request)),
        query => format!("{costs:?} {:?}", query.clone().with_cost(1)),
    }
}

fn facts<'q>(request: &'q Request<'_>) -> Vec<(&'q str, &'q [u8])> {
    let mut facts: Vec<_> = request.facts().iter().collect();
    facts.sort_unstable();
    facts
}

fn kind(query: &Query<'_>) -> String {
    match query {
        Query::ByPolicy(request) => format!("{} facts", request.facts().iter().count()),
        query => format!("{} costs", query.costs().iter().count()),
    }
}
