//! The LLM gateway: what it reserves, what it settles, and what it refuses.

mod fixture;

use reqwest::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tollgate_testkit::server::{Flavor, Server};

use super::process::Serving;
use fixture::{END, Fixture, HELLO, chunk};

#[tokio::test]
async fn chunks_pass_at_once_and_are_settled_at_the_end() {
    let fixture = Fixture::start().await;
    let sender = fixture.upstream.respond_with_stream();
    let body = json!({ "stream": true, "max_tokens": 80_000 });
    let mut response = fixture.post(Some("k1"), &body).await;
    assert_eq!(response.status(), 200);
    // 34 bytes of request are 9 tokens.
    assert_eq!(body.to_string().len(), 34);
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("x-ratelimit-limit-requests", "60"),
        ("x-ratelimit-remaining-requests", "59"),
        ("x-ratelimit-reset-requests", "1s"),
        ("x-ratelimit-limit-tokens", "90000"),
        ("x-ratelimit-remaining-tokens", "9991"),
        ("x-ratelimit-reset-tokens", "54s"),
    ] {
        assert_eq!(response.headers()[name], value, "{name}");
    }
    assert!(!response.headers().contains_key("x-hop"), "{:?}", response.headers());
    for text in [HELLO, HELLO, END] {
        sender.send(text).unwrap();
        assert_eq!(chunk(&mut response).await.unwrap(), text);
        assert_eq!(fixture.left("streams").await, 4, "the response has not ended");
        // 9 × 0.15 + 80 000 × 0.6 = 48 001.35.
        fixture.assert_spent(48_002).await;
    }
    drop(sender);
    assert_eq!(chunk(&mut response).await, None);
    // 19 × 0.15 + 10 × 0.6 = 8.85.
    fixture.assert_spent(9).await;
    assert_eq!(fixture.left("streams").await, 5);

    let received = fixture.upstream.received.lock().pop().unwrap();
    assert_eq!(received.path, "/prefix/v1/chat/completions?a=b");
    assert_eq!(received.headers["authorization"], "Bearer k1");
    assert!(!received.headers.contains_key("accept-encoding"));
    let options = json!({ "include_usage": true });
    let expected = json!({ "stream": true, "max_tokens": 80_000, "stream_options": options });
    assert_eq!(received.body, expected);
}

#[tokio::test]
async fn a_disconnect_is_charged_for_what_was_streamed() {
    let fixture = Fixture::start().await;
    let sender = fixture.upstream.respond_with_stream();
    let body = json!({ "stream": true, "max_tokens": 80_000 });
    let mut response = fixture.post(Some("k1"), &body).await;
    sender.send(HELLO).unwrap();
    assert_eq!(chunk(&mut response).await.unwrap(), HELLO);
    drop(response);
    // 9 tokens of request, and 12 bytes of text are 3: 9 × 0.15 + 3 × 0.6 = 3.15.
    fixture.assert_spent(4).await;
    assert!(sender.is_closed(), "the upstream can stop");
}

#[tokio::test]
async fn failures_are_free_and_other_responses_cost_their_usage() {
    let fixture = Fixture::start().await;
    let failure = json!({ "error": { "message": "invalid key" } });
    fixture.upstream.respond_with_json(401, &failure);
    let body = json!({ "stream": false, "max_completion_tokens": 80_000 });
    let response = fixture.post(Some("k1"), &body).await;
    assert_eq!(response.status(), 401);
    assert_eq!(response.json::<Value>().await.unwrap(), failure);
    fixture.assert_spent(0).await;
    assert_eq!(fixture.upstream.received.lock().pop().unwrap().body, body);

    // More than the estimate: 0.15 + 40 000 × 0.6.
    let small = json!({ "max_tokens": 100 });
    let answer = json!({ "usage": { "prompt_tokens": 1, "completion_tokens": 40_000 } });
    fixture.upstream.respond_with_json(200, &answer);
    let response = fixture.post(Some("k1"), &small).await;
    assert_eq!(response.json::<Value>().await.unwrap(), answer);
    fixture.assert_spent(24_001).await;

    let answer = json!({ "usage": { "prompt_tokens": 1_000_000, "completion_tokens": 1 } });
    fixture.upstream.respond_with_json(200, &answer);
    fixture.post(Some("k1"), &small).await.bytes().await.unwrap();
    let refused = fixture.post(Some("k1"), &small).await;
    assert_eq!(refused.status(), 429, "the key is in debt");
    assert_eq!(refused.headers()["x-ratelimit-remaining-tokens"], "0");
}

#[tokio::test]
async fn a_request_above_the_budget_is_refused() {
    let fixture = Fixture::start().await;
    let _sender = fixture.upstream.respond_with_stream();
    let body = json!({ "stream": true, "max_tokens": 80_000 });
    let _held = fixture.post(Some("k1"), &body).await;
    let refused = fixture.post(Some("k1"), &body).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["content-type"], "application/json");
    assert_eq!(refused.headers()["cache-control"], "no-store");
    let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    // 70 018 tokens are missing, 1500 refill each second.
    assert!((1..=47).contains(&wait), "{wait}");
    assert_eq!(refused.headers()["x-ratelimit-limit-tokens"], "90000");
    let body: Value = refused.json().await.unwrap();
    assert_eq!(
        (&body["error"], &body["retry_after"]),
        (&"rate_limit_exceeded".into(), &wait.into())
    );
    assert_eq!(fixture.left("streams").await, 4, "the refused request took nothing");
    fixture.assert_spent(48_002).await;

    let too_large = fixture.post(Some("k1"), &json!({ "max_tokens": 90_000 })).await;
    assert_eq!(too_large.status(), 429);
    assert!(!too_large.headers().contains_key("retry-after"), "waiting does not help");
    assert_eq!(fixture.upstream.received.lock().len(), 1, "refused requests are not forwarded");
}

/// The figures that depend on the time are not compared.
#[tokio::test]
async fn the_readme_shows_the_responses() {
    let readme = include_str!("../../../examples/llm_gateway/README.md");
    let fixture = Fixture::start().await;
    let sender = fixture.upstream.respond_with_stream();
    let message = json!([{ "role": "user", "content": "Hello" }]);
    let body = json!({ "stream": true, "max_tokens": 80_000, "messages": message });
    let mut response = fixture.post(Some("k1"), &body).await;
    let refused = fixture.post(Some("k1"), &body).await;
    let varying = ["date", "retry-after", "x-ratelimit-remaining", "x-ratelimit-reset"];
    let (_, shown) = readme.split_once("HTTP/1.1 200 OK\n").unwrap();
    let (first, shown) = shown.split_once("HTTP/1.1 429 Too Many Requests\n").unwrap();
    for (shown, headers, varying) in
        [(first, response.headers(), &varying[..1]), (shown, refused.headers(), &varying[..])]
    {
        let (shown, _) = shown.split_once("\n\n").unwrap();
        assert_eq!(shown.lines().count(), headers.len(), "{headers:?}");
        for (name, value) in headers {
            let line = match varying.iter().any(|varying| name.as_str().starts_with(varying)) {
                true => format!("{name}: "),
                false => format!("{name}: {}", value.to_str().unwrap()),
            };
            assert!(shown.contains(&line), "{line}");
        }
    }
    for text in [HELLO, END] {
        assert!(readme.contains(text.trim_end()), "{text}");
        sender.send(text).unwrap();
    }
    drop(sender);
    while chunk(&mut response).await.is_some() {}
    // 1 request refills each second, 1500 tokens too.
    let left = [fixture.left("requests").await, fixture.left("tokens").await];
    assert!(left[0] >= 59 && left[1] >= 89_971, "{left:?}");
}

#[tokio::test]
async fn each_key_has_five_streams() {
    let fixture = Fixture::start().await;
    let mut open = Vec::new();
    for _ in 0..5 {
        let sender = fixture.upstream.respond_with_stream();
        open.push((fixture.post(Some("k1"), &json!({ "stream": true })).await, sender));
    }
    let refused = fixture.post(Some("k1"), &json!({ "stream": true })).await;
    assert_eq!(refused.status(), 429);
    fixture.upstream.respond_with_json(200, &json!({}));
    let other = fixture.post(Some("k2"), &json!({})).await;
    assert_eq!(
        (other.status().as_u16(), &other.headers()["x-ratelimit-remaining-requests"]),
        (200, &"59".parse().unwrap())
    );
    let (mut response, sender) = open.remove(0);
    sender.send(END).unwrap();
    drop(sender);
    while chunk(&mut response).await.is_some() {}
    fixture.upstream.respond_with_json(200, &json!({}));
    assert_eq!(fixture.post(Some("k1"), &json!({})).await.status(), 200);
    let refused = fixture.post(None, &json!({})).await;
    assert_eq!(refused.status(), 429, "requests without a key are refused");
}

#[tokio::test]
async fn gateways_share_budgets_over_redis() {
    let redis = Server::start(Flavor::Redis);
    let url = redis.url();
    let (first, second) = (
        Fixture::start_with(&[("REDIS_URL", &url)]).await,
        Fixture::start_with(&[("REDIS_URL", &url)]).await,
    );
    let sender = first.upstream.respond_with_stream();
    let body = json!({ "stream": true, "max_tokens": 80_000 });
    let mut response = first.post(Some("k1"), &body).await;
    assert_eq!(second.left("streams").await, 4);
    assert_eq!(second.post(Some("k1"), &body).await.status(), 429);
    sender.send(END).unwrap();
    drop(sender);
    while chunk(&mut response).await.is_some() {}
    second.assert_spent(9).await;
    redis.kill();
    second.upstream.respond_with_json(200, &json!({}));
    assert_eq!(second.post(Some("k2"), &json!({})).await.status(), 200);
}

#[tokio::test]
async fn unavailable_upstream_is_a_bad_gateway() {
    // The port is free again when the listener is dropped.
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let gateway = Serving::start("llm_gateway", &[("UPSTREAM_URL", &format!("http://{address}"))]);
    let request = Client::new().post(format!("{}/v1/completions", gateway.url()));
    let response = request.bearer_auth("k1").body("{}").send().await.unwrap();
    assert_eq!(response.status(), 502);
    let error: Value = response.json().await.unwrap();
    assert_eq!(error["error"]["message"], "the upstream is unavailable");
}

#[test]
fn invalid_settings_are_named() {
    for url in [None, Some("localhost:8000"), Some("ftp://localhost"), Some("http://a b")] {
        let environment: Vec<_> = url.map(|url| ("UPSTREAM_URL", url)).into_iter().collect();
        let process = super::process::run("llm_gateway", &environment);
        assert_eq!(process.status.code(), Some(2), "{url:?}");
        let stderr = String::from_utf8(process.stderr).unwrap();
        assert!(stderr.starts_with("llm_gateway: UPSTREAM_URL"), "{stderr}");
    }
}
