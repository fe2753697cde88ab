//! Parsing of keys, facts and costs from command line arguments.

use serde_json::{Map, Value};
use tollgate::{Costs, Unit};

/// Returns the JSON body of a check with these costs for one key (`user:1`) or for facts (`client=c1 path=/search`).
pub(super) fn request_body(key_or_facts: &[String], costs: &Costs) -> Result<String, String> {
    request_fields(key_or_facts, costs).map(|body| Value::Object(body).to_string())
}

/// As [`request_body`], for commands that add fields.
pub(super) fn request_fields(
    key_or_facts: &[String],
    costs: &Costs,
) -> Result<Map<String, Value>, String> {
    let mut body = Map::new();
    match key_or_facts {
        [key] if !is_fact(key) => {
            body.insert("key".to_owned(), Value::from(key.as_str()));
        }
        facts => {
            body.insert("facts".to_owned(), Value::Object(parse_facts(facts)?));
        }
    }
    // `cost` is the form that servers of earlier versions understand.
    if *costs == Costs::requests(costs.get(&Unit::requests())) {
        body.insert("cost".to_owned(), Value::from(costs.get(&Unit::requests())));
    } else {
        body.insert("costs".to_owned(), amounts(costs));
    }
    Ok(body)
}

/// Returns the amount of each unit as JSON.
pub(super) fn amounts(costs: &Costs) -> Value {
    let amount = |(unit, amount): (&Unit, u64)| (unit.to_string(), Value::from(amount));
    Value::Object(costs.iter().map(amount).collect())
}

/// Returns whether a single argument is a fact. `https://x?a=b` is a key that contains an equals sign.
fn is_fact(arg: &str) -> bool {
    arg.split_once('=').is_some_and(|(name, _)| !name.contains(['/', '?']))
}

fn parse_facts(args: &[String]) -> Result<Map<String, Value>, String> {
    let mut facts = Map::new();
    for arg in args {
        let Some((name, value)) = arg.split_once('=') else {
            return Err(format!("{arg:?} is not FACT=VALUE, such as client=c1"));
        };
        if facts.insert(name.to_owned(), Value::from(value)).is_some() {
            return Err(format!("fact {name:?} is given twice; give it once"));
        }
    }
    Ok(facts)
}
