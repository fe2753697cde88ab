//! `POST /check/batch`.

use serde_json::{Value, json};

use crate::service::Service;

fn results(service: &Service, requests: &Value) -> Vec<Value> {
    let reply = service.post("/check/batch", json!({ "requests": requests }).to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    let body = reply.json();
    body["results"].as_array().expect("a list").clone()
}

#[test]
fn decides_items_in_order_and_independently() {
    let service = Service::start(&[]);
    let item = json!({"key": "a", "limits": [{"limit": 2, "window_ms": 60_000}]});
    let results = results(&service, &json!([item, item, item, {"key": "b"}]));
    let allowed: Vec<bool> =
        results.iter().map(|result| result["allowed"].as_bool().unwrap()).collect();
    assert_eq!(allowed, [true, true, false, true]);
    assert_eq!(results[3]["remaining"], 99);
}

#[test]
fn invalid_item_is_a_problem_in_its_position() {
    let service = Service::start(&[]);
    let results = results(
        &service,
        &json!([{"key": "a"}, {"key": ""}, 7, {"key": "a", "cost": -1}, {"key": "a"}]),
    );
    assert_eq!(results[0]["remaining"], 99);
    assert_eq!((&results[1]["status"], &results[1]["field"]), (&json!(400), &json!("key")));
    assert_eq!(results[2]["status"], 400);
    assert_eq!(results[3]["field"], "cost");
    assert_eq!(results[4]["remaining"], 98);
}

#[test]
fn accepts_1000_items_and_rejects_1001() {
    let service = Service::start(&[]);
    assert_eq!(results(&service, &json!([])).len(), 0);
    assert_eq!(results(&service, &json!(vec![json!({"key": "k"}); 1000])).len(), 1000);
    let body = json!({"requests": vec![json!({"key": "other"}); 1001]}).to_string();
    let reply = service.post("/check/batch", body);
    assert_eq!((reply.status, &reply.json()["field"]), (400, &json!("requests")));
    assert_eq!(service.check("other")["remaining"], 99);
}

#[test]
fn rejects_malformed_batches() {
    let service = Service::start(&[]);
    for body in ["", "[]", "{}", r#"{"requests":{}}"#, r#"{"requests":[],"requests":[]}"#] {
        assert_eq!(service.post("/check/batch", body).status, 400, "{body}");
    }
    let large = format!(r#"{{"requests":[{{"key":"{}"}}]}}"#, "x".repeat(70_000));
    let reply = service.post("/check/batch", large);
    assert_eq!(reply.json()["results"][0]["status"], 413);
}
