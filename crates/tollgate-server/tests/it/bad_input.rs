//! Invalid requests: the problem names the field, nothing is taken, and the connection stays usable.

use serde_json::{Value, json};

use crate::client::Client;
use crate::service::Service;

/// Returns the amounts of this many units.
fn units(count: u64) -> String {
    let amounts: Vec<String> = (0..count).map(|number| format!(r#""u{number}":1"#)).collect();
    amounts.join(",")
}

/// Invalid bodies with the field that the problem names (`-` for none).
pub(crate) fn invalid_bodies() -> Vec<(String, &'static str)> {
    let limit = |limit: Value| json!({"key": "k", "limits": [limit]}).to_string();
    let long = "x".repeat(1025);
    let text = |body: &str| body.to_owned();
    vec![
        (text(""), "-"),
        (text("{"), "-"),
        (text("null"), "-"),
        (text("[]"), "-"),
        (text(r#"["k"]"#), "-"),
        (text(r#""k""#), "-"),
        (text("{}"), "key"),
        (text("{} {}"), "-"),
        (text(r#"{"key":"k"} trailing"#), "-"),
        (text(r#"{"key":""}"#), "key"),
        (text(r#"{"key":null}"#), "key"),
        (text(r#"{"key":7}"#), "key"),
        (text(r#"{"key":"a","key":"b"}"#), "key"),
        (text(r#"{"key":"a","facts":{"client":"b"}}"#), "key"),
        (text(r#"{"kee":"a"}"#), "kee"),
        (text(r#"{"facts":{}}"#), "facts"),
        (text(r#"{"facts":[]}"#), "facts"),
        (text(r#"{"facts":{"client":""}}"#), "facts.client"),
        (text(r#"{"facts":{"client":1}}"#), "facts.client"),
        (text(r#"{"facts":{"client":"a","client":"b"}}"#), "facts.client"),
        (text(r#"{"facts":{"a b":"c"}}"#), "facts.a b"),
        (text(r#"{"facts":{"tenant":"a"},"tenant":"b"}"#), "tenant"),
        (text(r#"{"key":"k","tenant":""}"#), "tenant"),
        (format!(r#"{{"key":"{long}"}}"#), "key"),
        (format!(r#"{{"facts":{{"client":"{long}"}}}}"#), "facts.client"),
        (text(r#"{"key":"k","cost":-1}"#), "cost"),
        (text(r#"{"key":"k","cost":1.5}"#), "cost"),
        (text(r#"{"key":"k","cost":1.0}"#), "cost"),
        (text(r#"{"key":"k","cost":1e3}"#), "cost"),
        (text(r#"{"key":"k","cost":1e308}"#), "cost"),
        (text(r#"{"key":"k","cost":1e999}"#), "cost"),
        (text(r#"{"key":"k","cost":NaN}"#), "cost"),
        (text(r#"{"key":"k","cost":"1"}"#), "cost"),
        (text(r#"{"key":"k","cost":null}"#), "cost"),
        (text(r#"{"key":"k","cost":9007199254740992}"#), "cost"),
        (text(r#"{"key":"k","cost":18446744073709551615}"#), "cost"),
        (text(r#"{"key":"k","cost":1,"costs":{"requests":1}}"#), "cost"),
        (text(r#"{"key":"k","costs":null}"#), "costs"),
        (text(r#"{"key":"k","costs":5}"#), "costs"),
        (text(r#"{"key":"k","costs":[["tokens",5]]}"#), "costs"),
        (text(r#"{"key":"k","costs":{"tokens":-1}}"#), "costs.tokens"),
        (text(r#"{"key":"k","costs":{"tokens":1.0}}"#), "costs.tokens"),
        (text(r#"{"key":"k","costs":{"tokens":"1"}}"#), "costs.tokens"),
        (text(r#"{"key":"k","costs":{"tokens":9007199254740992}}"#), "costs.tokens"),
        (text(r#"{"key":"k","costs":{"tokens":1,"tokens":2}}"#), "costs.tokens"),
        (text(r#"{"key":"k","costs":{"a b":1}}"#), "costs.a b"),
        (text(r#"{"key":"k","costs":{"":1}}"#), "costs."),
        (format!(r#"{{"key":"k","costs":{{{}}}}}"#, units(17)), "costs"),
        (text(r#"{"key":"k","unit":"tokens"}"#), "unit"),
        (text(r#"{"key":"k","limit":1,"window_ms":1,"unit":"a b"}"#), "unit"),
        (text(r#"{"key":"k","limit":0,"window_ms":1,"unit":"tokens"}"#), "unit"),
        (limit(json!({"limit": 1, "window_ms": 1, "unit": ""})), "limits[0].unit"),
        (limit(json!({"limit": 1, "window_ms": 1, "unit": 5})), "limits[0].unit"),
        (
            limit(json!({"limit": 1, "algorithm": "concurrency", "unit": "tokens"})),
            "limits[0].unit",
        ),
        (text(r#"{"key":"k","limits":[]}"#), "limits"),
        (text(r#"{"key":"k","limits":{}}"#), "limits"),
        (text(r#"{"facts":{"user":"u"},"limits":[{"limit":1,"window_ms":1}]}"#), "limits"),
        (
            json!({"key": "k", "limits": vec![json!({"limit": 1, "window_ms": 1}); 17]})
                .to_string(),
            "limits",
        ),
        (limit(json!(["m", "token_bucket", 1, 1000])), "limits[0]"),
        (limit(json!("10")), "limits[0]"),
        (limit(json!("10/m")), "limits[0]"),
        (limit(json!("10/month")), "limits[0]"),
        (limit(json!("-1/s")), "limits[0]"),
        (limit(json!("1/101w0")), "limits[0]"),
        (limit(json!("9007199254740993/s")), "limits[0]"),
        (limit(json!(10)), "limits[0]"),
        (limit(json!(null)), "limits[0]"),
        (json!({"key": "k", "limits": ["10/min", "1/"]}).to_string(), "limits[1]"),
        (text(r#"{"key":"k","limit":10}"#), "window_ms"),
        (text(r#"{"key":"k","limit":0}"#), "window_ms"),
        (text(r#"{"key":"k","limit":null,"window_ms":1000}"#), "limit"),
        (text(r#"{"key":"k","limit":-1,"window_ms":1000}"#), "limit"),
        (text(r#"{"key":"k","limit":10,"window_ms":0}"#), "window_ms"),
        (text(r#"{"key":"k","window_ms":1000}"#), "window_ms"),
        (text(r#"{"key":"k","algorithm":"token_bucket"}"#), "algorithm"),
        (text(r#"{"key":"k","burst":1}"#), "burst"),
        (text(r#"{"key":"k","name":"a"}"#), "name"),
        (text(r#"{"key":"k","limit":1,"window_ms":1000,"burst":0}"#), "burst"),
        (text(r#"{"key":"k","limit":1,"window_ms":1000,"name":"a b"}"#), "name"),
        (text(r#"{"key":"k","limit":1,"window_ms":1000,"units":"tokens"}"#), "units"),
        (text(r#"{"key":"k","limit":1,"window_ms":1000,"algorithm":"leaky"}"#), "algorithm"),
        (text(r#"{"key":"k","limit":1,"window_ms":1000,"algorithm":"concurrency"}"#), "algorithm"),
        (text(r#"{"facts":{"user":"u"},"limit":1,"window_ms":1}"#), "limit"),
        (text(r#"{"key":"k","limit":1,"limits":["1/s"]}"#), "limit"),
        (text(r#"{"key":"k","limit":1,"window_ms":1000,"limits":["1/s"]}"#), "limit"),
        (text(r#"{"key":"k","window_ms":1000,"limits":["1/s"]}"#), "window_ms"),
        (limit(json!({"window_ms": 1000})), "limits[0].limit"),
        (limit(json!({"limit": 1})), "limits[0].window_ms"),
        (limit(json!({"limit": 1, "window_ms": 0})), "limits[0].window_ms"),
        (limit(json!({"limit": 1, "window_ms": 3_155_760_000_001_u64})), "limits[0].window_ms"),
        (limit(json!({"limit": -1, "window_ms": 1000})), "limits[0].limit"),
        (limit(json!({"limit": 1, "window_ms": 1000, "burst": 0})), "limits[0].burst"),
        (limit(json!({"limit": 1, "window_ms": 1000, "bursts": 1})), "limits[0].bursts"),
        (
            limit(json!({"limit": 1, "window_ms": 1000, "algorithm": "leaky"})),
            "limits[0].algorithm",
        ),
        (limit(json!({"limit": 1, "window_ms": 1000, "name": "a b"})), "limits[0].name"),
        (limit(json!({"limit": 1, "window_ms": 1000, "name": ""})), "limits[0].name"),
        (limit(json!({"limit": 1, "window_ms": 1000, "align": "day"})), "limits[0].align"),
        (
            limit(json!({"limit": 1, "algorithm": "fixed_window", "window_ms": 5, "align": "day"})),
            "limits[0].window_ms",
        ),
        (
            limit(json!({"limit": 1, "algorithm": "fixed_window", "align": "decade"})),
            "limits[0].align",
        ),
        (
            limit(json!({"limit": 1, "algorithm": "fixed_window", "align": "day", "tz": "Mars/X"})),
            "limits[0].tz",
        ),
        (
            limit(json!({"limit": 1, "algorithm": "fixed_window", "window_ms": 5, "tz": "UTC"})),
            "limits[0].tz",
        ),
        (
            limit(json!({"limit": 1, "algorithm": "sliding_window", "window_ms": 1, "burst": 2})),
            "limits[0].burst",
        ),
        (
            limit(json!({"limit": 100_001, "algorithm": "sliding_window", "window_ms": 1000})),
            "limits[0].limit",
        ),
        (
            limit(json!({"limit": 1, "algorithm": "concurrency", "window_ms": 1000})),
            "limits[0].window_ms",
        ),
        (limit(json!({"limit": 1, "algorithm": "concurrency", "ttl_ms": 0})), "limits[0].ttl_ms"),
        (limit(json!({"limit": 1, "window_ms": 1, "ttl_ms": 1})), "limits[0].ttl_ms"),
        (
            json!({"key": "k", "limits": [
                {"limit": 1, "window_ms": 1000, "name": "a"},
                {"limit": 2, "window_ms": 1000, "name": "a"},
            ]})
            .to_string(),
            "limits",
        ),
    ]
}

#[test]
fn problems_name_the_invalid_field() {
    let service = Service::start(&[]);
    let mut client = service.client();
    for (body, field) in invalid_bodies() {
        for path in ["/check", "/peek", "/refund", "/explain"] {
            let reply = client.post(path, &body);
            assert_eq!(reply.status, 400, "{path} {body}: {}", reply.body);
            assert_eq!(reply.header("content-type"), Some("application/problem+json"));
            let problem = reply.json();
            assert_eq!(problem["status"], 400);
            let named = problem.get("field").and_then(Value::as_str).unwrap_or("-");
            assert_eq!(named, field, "{path} {body}: {problem}");
            assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
        }
    }
    assert_eq!(service.check("k")["remaining"], 99, "nothing was taken");
}

#[test]
fn limit_with_limits_names_both_fields() {
    let service = Service::start(&[]);
    let body = r#"{"key":"k","limit":1,"window_ms":1000,"limits":["1/s"]}"#;
    let problem = service.post("/check", body).json();
    let expected = "limit: `limit` and `limits` exclude each other; send one of them";
    assert_eq!(problem["detail"], expected);
}

#[test]
fn rejects_lists_in_place_of_objects() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let permit = "00000000000000000000000000000001@ninline/concurrency{:k}";
    for (path, body) in [
        ("/check", json!(["k"])),
        ("/peek", json!(["k"])),
        ("/refund", json!(["k"])),
        ("/explain", json!(["k"])),
        ("/check", json!({"key": "k", "limits": [["m", "token_bucket", 10, 60_000]]})),
        ("/check/batch", json!([[{"key": "k"}]])),
        ("/release", json!([permit])),
        ("/renew", json!([permit])),
    ] {
        let reply = client.post(path, body.to_string());
        assert_eq!(reply.status, 400, "{path} {body}: {}", reply.body);
    }
    let results = client.post("/check/batch", r#"{"requests":[["k"]]}"#).json();
    assert_eq!(results["results"][0]["status"], 400, "{results}");
    assert_eq!(service.check("k")["remaining"], 99);
}

#[test]
fn rejects_bodies_that_are_not_utf8() {
    let service = Service::start(&[]);
    for body in [&b"\xff\xfe"[..], b"{\"key\":\"\xff\"}", br#"{"key":"\ud800"}"#, b"\0"] {
        assert_eq!(service.post("/check", body).status, 400, "{body:?}");
    }
}

#[test]
fn rejects_deep_nesting() {
    let service = Service::start(&[]);
    let deep = |open: &str, count: usize| format!(r#"{{"key":{}"#, open.repeat(count));
    for body in [deep("[", 30_000), deep(r#"{"a":"#, 10_000)] {
        assert_eq!(service.post("/check", body).status, 400);
    }
    let deep = format!(r#"{{"requests":[{}]}}"#, "[".repeat(60_000));
    assert_eq!(service.post("/check/batch", deep).status, 400);
}

#[test]
fn content_type_must_be_json() {
    let service = Service::start(&[]);
    let status = |headers: &str| {
        let mut client = service.client();
        let body = r#"{"key":"k"}"#;
        let length = body.len();
        let request = format!(
            "POST /check HTTP/1.1\r\nhost: t\r\n{headers}content-length: {length}\r\n\r\n{body}"
        );
        client.send(request.as_bytes()).unwrap();
        client.reply().unwrap().status
    };
    assert_eq!(status("content-type: application/json; charset=utf-8\r\n"), 200);
    assert_eq!(status("content-type: Application/JSON\r\n"), 200);
    assert_eq!(status(""), 415);
    assert_eq!(status("content-type: text/plain\r\n"), 415);
    assert_eq!(status("content-type: application/jsonx\r\n"), 415);
    assert_eq!(status("content-type: application/x-www-form-urlencoded\r\n"), 415);
    assert_eq!(status("content-type: application/json\r\ncontent-type: text/plain\r\n"), 415);
    assert_eq!(service.check("k")["remaining"], 97, "only the two valid requests took");
}

#[test]
fn unknown_paths_and_methods_are_problems() {
    let service = Service::start(&[]);
    let mut client = service.client();
    for (path, status) in [("/dash", 404), ("/chec", 404), ("/check/", 404), ("/check", 405)] {
        let reply = client.get(path);
        assert_eq!((reply.status, path), (status, path));
        assert_eq!(reply.header("content-type"), Some("application/problem+json"));
        assert_eq!(reply.json()["status"], status);
    }
    assert_eq!(client.get("/check").header("allow"), Some("POST"));
    assert_eq!(client.post("/metrics", "{}").status, 405);
    assert_eq!(client.post("/admin/overrides", "{}").status, 404);
}

#[test]
fn rejects_invalid_query_parameters() {
    let service = Service::start(&[]);
    let mut client = service.client();
    for query in
        ["limit=0", "limit=1001", "limit=x", "limit=-1", "limt=5", "limit=1&limit=2", "cursor=zz"]
    {
        for path in ["/api/counters", "/api/blocks"] {
            let reply = client.get(&format!("{path}?{query}"));
            assert_eq!(reply.status, 400, "{path}?{query}: {}", reply.body);
        }
    }
}

#[test]
fn closes_connections_that_are_not_http() {
    let service = Service::start(&[]);
    let mut client = service.client();
    client.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n").unwrap();
    if let Ok(reply) = client.reply() {
        assert_eq!(reply.status, 400);
    }
    assert_eq!(Client::connect(service.address()).get("/healthz").status, 200);
}
