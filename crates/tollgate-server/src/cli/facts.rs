//! Parsing of keys and facts from command line arguments.

use serde_json::{Map, Value};

/// Returns the JSON body of a check for one key (`user:1`) or for facts (`client=c1 path=/search`).
pub(super) fn request_body(key_or_facts: &[String], cost: u64) -> Result<String, String> {
    let mut body = Map::new();
    match key_or_facts {
        [key] if !is_fact(key) => {
            body.insert("key".to_owned(), Value::from(key.as_str()));
        }
        facts => {
            body.insert("facts".to_owned(), Value::Object(parse_facts(facts)?));
        }
    }
    body.insert("cost".to_owned(), Value::from(cost));
    Ok(Value::Object(body).to_string())
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
