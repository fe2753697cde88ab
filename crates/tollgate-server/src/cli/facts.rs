//! Facts as they are typed.

use serde_json::{Map, Value};

/// `user:1`, or `client=c1 path=/search`, as the body of a check.
pub(super) fn body_of(what: &[String], cost: u64) -> Result<String, String> {
    let mut body = Map::new();
    match what {
        [key] if !is_fact(key) => {
            body.insert("key".to_owned(), Value::from(key.as_str()));
        }
        facts => {
            body.insert("facts".to_owned(), Value::Object(facts_of(facts)?));
        }
    }
    body.insert("cost".to_owned(), Value::from(cost));
    Ok(Value::Object(body).to_string())
}

/// Whether a lone argument is a fact. `https://x?a=b` is a key that happens to hold an equals sign.
fn is_fact(typed: &str) -> bool {
    typed.split_once('=').is_some_and(|(name, _)| !name.contains(['/', '?']))
}

fn facts_of(typed: &[String]) -> Result<Map<String, Value>, String> {
    let mut facts = Map::new();
    for fact in typed {
        let Some((name, value)) = fact.split_once('=') else {
            return Err(format!("{fact:?} is not FACT=VALUE, such as client=c1"));
        };
        if facts.insert(name.to_owned(), Value::from(value)).is_some() {
            return Err(format!("the fact {name:?} is given twice"));
        }
    }
    Ok(facts)
}
