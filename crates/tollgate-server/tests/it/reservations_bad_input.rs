//! Invalid bodies of `/reserve`, `/settle`, `/release` and `/renew`: the problem names the field, nothing is taken.

use serde_json::{Value, json};

use crate::bad_input::invalid_bodies;
use crate::service::Service;

/// Bodies of /reserve that are invalid although those of /check would be valid, with the field of the problem.
fn invalid_terms() -> Vec<(Value, &'static str)> {
    let with = |field: &str, value: Value| {
        let mut body = json!({"key": "k"});
        body[field] = value;
        body
    };
    vec![
        (with("ttl_ms", json!(0)), "ttl_ms"),
        (with("ttl_ms", json!(86_400_001)), "ttl_ms"),
        (with("ttl_ms", json!(9_007_199_254_740_991_u64)), "ttl_ms"),
        (with("ttl_ms", json!(9_007_199_254_740_992_u64)), "ttl_ms"),
        (with("ttl_ms", json!(-1)), "ttl_ms"),
        (with("ttl_ms", json!(1.5)), "ttl_ms"),
        (with("ttl_ms", json!("60s")), "ttl_ms"),
        (with("ttl_ms", json!(null)), "ttl_ms"),
        (with("id", json!("")), "id"),
        (with("id", json!("x".repeat(65))), "id"),
        (with("id", json!("ä".repeat(33))), "id"),
        (with("id", json!(7)), "id"),
        (with("id", json!(null)), "id"),
        (with("ttl", json!(60)), "ttl"),
        (with("permit", json!("x")), "permit"),
        (with("reservation", json!("x")), "reservation"),
    ]
}

/// Invalid bodies of /settle, with the field of the problem (`-` for none).
fn invalid_settlements(token: &str) -> Vec<(String, &'static str)> {
    let with = |fields: Value| {
        let mut body = json!({ "reservation": token });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body.to_string()
    };
    let of = |text: &str| json!({"reservation": text, "cost": 0}).to_string();
    let twice = format!(r#"{{"reservation":"{token}","cost":0,"cost":0}}"#);
    let unit_twice = format!(r#"{{"reservation":"{token}","costs":{{"a":1,"a":1}}}}"#);
    let many: Value = (0..17).map(|unit| (format!("u{unit}"), json!(1))).collect();
    vec![
        (String::new(), "-"),
        ("{".to_owned(), "-"),
        ("[]".to_owned(), "-"),
        ("null".to_owned(), "-"),
        ("{}".to_owned(), "reservation"),
        (r#"{"cost":0}"#.to_owned(), "reservation"),
        (r#"{"reservation":7,"cost":0}"#.to_owned(), "reservation"),
        (r#"{"reservation":null,"cost":0}"#.to_owned(), "reservation"),
        (of(""), "reservation"),
        (of("r0"), "reservation"),
        (of(&token.to_uppercase()), "reservation"),
        (of(&format!("{token}0")), "reservation"),
        (of(&token[..66]), "reservation"),
        (of(&token.replacen("r0", "r00", 1)), "reservation"),
        (of(&token.replacen("r0", "r-1", 1)), "reservation"),
        (of(&token.replacen("r0", "r4294967296", 1)), "reservation"),
        (of("00000000000000000000000000000001@ninline/concurrency{:k}"), "reservation"),
        (with(json!({})), "costs"),
        (with(json!({"cost": 0, "costs": {}})), "cost"),
        (with(json!({"cost": -1})), "cost"),
        (with(json!({"cost": 0.5})), "cost"),
        (with(json!({"cost": "0"})), "cost"),
        (with(json!({"cost": null})), "cost"),
        (with(json!({"cost": 9_007_199_254_740_992_u64})), "cost"),
        (twice, "cost"),
        (with(json!({"costs": null})), "costs"),
        (with(json!({"costs": 5})), "costs"),
        (with(json!({"costs": []})), "costs"),
        (with(json!({"costs": {"tokens": -1}})), "costs.tokens"),
        (with(json!({"costs": {"tokens": 1.5}})), "costs.tokens"),
        (with(json!({"costs": {"tokens": null}})), "costs.tokens"),
        (with(json!({"costs": {"tokens": "1"}})), "costs.tokens"),
        (with(json!({"costs": {"a b": 1}})), "costs.a b"),
        (with(json!({"costs": {"": 1}})), "costs."),
        (with(json!({ "costs": many })), "costs"),
        (unit_twice, "costs.a"),
        (with(json!({"cost": 0, "tenant": ""})), "tenant"),
        (with(json!({"cost": 0, "tenant": "x".repeat(1025)})), "tenant"),
        (with(json!({"cost": 0, "tenant": 7})), "tenant"),
        (with(json!({"cost": 0, "tenant": null})), "tenant"),
        (with(json!({"cost": 0, "key": "k"})), "key"),
        (with(json!({"cost": 0, "ttl_ms": 1})), "ttl_ms"),
        (with(json!({"cost": 0, "id": "a"})), "id"),
        (with(json!({"cost": 0, "permit": "a"})), "permit"),
    ]
}

/// Invalid bodies of /release and /renew, with the field of the problem.
fn invalid_handles(token: &str) -> Vec<(Value, &'static str)> {
    let permit = "00000000000000000000000000000001@ninline/concurrency{:k}";
    vec![
        (json!({}), "permit"),
        (json!({"permit": permit, "reservation": token}), "permit"),
        (json!({ "permit": token }), "permit"),
        (json!({"permit": ""}), "permit"),
        (json!({ "permit": null }), "permit"),
        (json!({ "reservation": permit }), "reservation"),
        (json!({"reservation": ""}), "reservation"),
        (json!({"reservation": 1}), "reservation"),
        (json!({ "reservation": null, "permit": permit }), "reservation"),
        (json!({"reservation": token, "cost": 0}), "cost"),
        (json!({"reservation": token, "tenant": "t"}), "tenant"),
    ]
}

/// Asserts that each body is a problem with this field, of which the detail begins with its name.
fn expect_problems(service: &Service, path: &str, bodies: &[(String, &str)]) {
    let mut client = service.client();
    for (body, field) in bodies {
        let reply = client.post(path, body);
        assert_eq!(reply.status, 400, "{path} {body}: {}", reply.body);
        assert_eq!(reply.header("content-type"), Some("application/problem+json"));
        let problem = reply.json();
        let named = problem.get("field").and_then(Value::as_str).unwrap_or("-");
        assert_eq!(named, *field, "{path} {body}: {problem}");
        let detail = problem["detail"].as_str().expect("a problem has a detail");
        assert!(
            named == "-" || detail.starts_with(&format!("{named}: ")),
            "{path} {body}: {detail}"
        );
    }
}

fn texts(bodies: Vec<(Value, &'static str)>) -> Vec<(String, &'static str)> {
    bodies.into_iter().map(|(body, field)| (body.to_string(), field)).collect()
}

#[test]
fn problems_name_the_invalid_field() {
    let service = Service::start(&[]);
    let reserved = service.post("/reserve", r#"{"key":"k","cost":40}"#).json();
    let token = reserved["reservation"].as_str().expect("it is allowed");
    expect_problems(&service, "/reserve", &invalid_bodies());
    expect_problems(&service, "/reserve", &texts(invalid_terms()));
    expect_problems(&service, "/settle", &invalid_settlements(token));
    for path in ["/release", "/renew"] {
        expect_problems(&service, path, &texts(invalid_handles(token)));
    }
    assert_eq!(service.check("k")["remaining"], 59, "nothing was taken or returned");
}

#[test]
fn checks_do_not_accept_the_fields_of_reservations() {
    let service = Service::start(&[]);
    for path in ["/check", "/peek", "/refund", "/explain"] {
        let bodies = [
            (r#"{"key":"k","ttl_ms":1}"#.to_owned(), "ttl_ms"),
            (r#"{"key":"k","id":"a"}"#.to_owned(), "id"),
        ];
        expect_problems(&service, path, &bodies);
    }
}

#[test]
fn longest_ttl_and_id_are_accepted() {
    let service = Service::start(&[]);
    for ttl_ms in [1, 86_400_000] {
        let body = json!({"key": "k", "ttl_ms": ttl_ms, "id": "x".repeat(64)});
        let reply = service.post("/reserve", body.to_string());
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    for path in ["/reserve", "/settle", "/release", "/renew"] {
        let reply = service.client().request("GET", path, &[], "");
        assert_eq!(reply.status, 405, "{path}");
    }
}
