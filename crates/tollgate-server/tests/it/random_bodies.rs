//! 100 000 random bodies cause no server error and no panic.

use serde_json::{Map, Value, json};
use tollgate_testkit::random::Random;

use crate::service::Service;

const BODIES: u64 = 100_000;

#[test]
fn random_bodies_cause_no_server_error() {
    let service = Service::start(&["--max-keys", "2000"]);
    let mut client = service.client();
    let mut seen = [0u64; 2];
    for seed in 0..BODIES {
        let body = body(&mut Random::new(seed));
        let reply = client.try_post("/check", &body).unwrap_or_else(|error| {
            panic!("seed {seed}: {error}: {}", String::from_utf8_lossy(&body))
        });
        match reply.status {
            200 => seen[0] += 1,
            400 | 413 => seen[1] += 1,
            status => {
                panic!(
                    "seed {seed}: {status}: {} for {}",
                    reply.body,
                    String::from_utf8_lossy(&body)
                )
            }
        }
    }
    // Both valid and invalid bodies occur.
    assert!(seen.iter().all(|count| *count > BODIES / 20), "{seen:?}");
    assert!(!service.log().contains("panicked"), "{}", service.log());
}

/// Returns a random body, usually invalid; one in eight also has damaged bytes.
fn body(random: &mut Random) -> Vec<u8> {
    let mut bytes = random_query(random).to_string().into_bytes();
    if random.one_in(8) {
        for _ in 0..=random.within(0, 3) {
            damage(random, &mut bytes);
        }
    }
    bytes
}

fn damage(random: &mut Random, bytes: &mut Vec<u8>) {
    let Some(last) = bytes.len().checked_sub(1) else { return };
    let position = random.draw().to_le_bytes();
    let position = usize::from(u16::from_le_bytes([position[0], position[1]])) % (last + 1);
    match random.within(0, 3) {
        0 => bytes.truncate(position),
        1 => bytes[position] = random.draw().to_le_bytes()[0],
        2 => bytes.insert(position, random.draw().to_le_bytes()[0]),
        _ => {
            let copy = bytes[position..].to_vec();
            bytes.extend_from_slice(&copy);
        }
    }
}

fn random_query(random: &mut Random) -> Value {
    let mut fields = Map::new();
    if !random.one_in(20) {
        fields.insert("key".to_owned(), text(random));
    }
    if random.one_in(6) {
        fields.remove("key");
        let facts = ["client", "user", "path", "method", "ip", "tier", "api_key", "odd name"];
        let facts = (0..random.within(0, 5)).map(|_| {
            let name = random.pick(&facts).copied().unwrap_or("client").to_owned();
            (name, text(random))
        });
        fields.insert("facts".to_owned(), Value::Object(facts.collect()));
    }
    if random.one_in(3) {
        fields.insert("cost".to_owned(), number(random));
    }
    if random.one_in(8) {
        fields.insert("tenant".to_owned(), text(random));
    }
    if random.one_in(2) {
        let entry = |random: &mut Random| match random.one_in(4) {
            true => rate(random),
            false => limit(random),
        };
        let limits = (0..=random.within(0, 2)).map(|_| entry(random)).collect();
        fields.insert("limits".to_owned(), Value::Array(limits));
    } else if random.one_in(4) {
        fields.insert("limit".to_owned(), number(random));
        fields.insert("window_ms".to_owned(), number(random));
        if random.one_in(4) {
            fields.insert("burst".to_owned(), number(random));
        }
    }
    if random.one_in(30) {
        fields.insert("unknown".to_owned(), number(random));
    }
    Value::Object(fields)
}

fn rate(random: &mut Random) -> Value {
    let units = ["ms", "s", "min", "h", "d", "w", "month", "", "m", "s/s"];
    let unit = random.pick(&units).copied().unwrap_or_default();
    json!(format!("{}/{}{unit}", random.magnitude(1 << 60), random.magnitude(1 << 40)))
}

fn limit(random: &mut Random) -> Value {
    let algorithms = [
        "token_bucket",
        "sliding_window",
        "sliding_counter",
        "fixed_window",
        "concurrency",
        "other",
    ];
    let mut fields = Map::new();
    fields.insert("limit".to_owned(), number(random));
    if !random.one_in(10) {
        fields.insert("window_ms".to_owned(), number(random));
    }
    if random.one_in(2) {
        fields.insert("algorithm".to_owned(), json!(random.pick(&algorithms)));
    }
    if random.one_in(4) {
        fields.insert("burst".to_owned(), number(random));
    }
    if random.one_in(10) {
        fields.insert("align".to_owned(), json!(random.pick(&["day", "month", "year", "aeon"])));
    }
    if random.one_in(10) {
        fields.insert("tz".to_owned(), json!(random.pick(&["UTC", "Europe/Zurich", "Nowhere"])));
    }
    if random.one_in(6) {
        fields.insert("ttl_ms".to_owned(), number(random));
    }
    if random.one_in(4) {
        fields.insert("name".to_owned(), text(random));
    }
    Value::Object(fields)
}

fn number(random: &mut Random) -> Value {
    let odd = [
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1e308),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(null),
        json!("7"),
        json!(true),
        json!([]),
        json!({}),
        json!((1u64 << 53) - 1),
        json!(1u64 << 53),
    ];
    match random.within(0, 9) {
        0..=5 => json!(random.magnitude(100_000)),
        6 | 7 => json!(random.magnitude(1 << 52)),
        _ => random.pick(&odd).cloned().unwrap_or_default(),
    }
}

fn text(random: &mut Random) -> Value {
    let odd = [
        json!(""),
        json!("\u{0}"),
        json!("a\r\nb"),
        json!("{tag}"),
        json!("a:b"),
        json!("%41"),
        json!("\u{202e}"),
        json!("ä"),
        json!("💥".repeat(300)),
        json!("x".repeat(1024)),
        json!("x".repeat(1025)),
        json!(7),
        json!(null),
        json!(["a"]),
    ];
    match random.within(0, 4) {
        0 => random.pick(&odd).cloned().unwrap_or_default(),
        _ => json!(format!("user:{}", random.magnitude(5000))),
    }
}
