//! The axum example: 10 requests per minute and 100 per hour for each client.

use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::{Client, Response};
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::MAX_WAIT;

use crate::examples::process::{Serving, run};

async fn send(client: &Client, url: &str, id: &str) -> Response {
    client.get(url).header("X-Client-Id", id).send().await.expect("the example responds")
}

fn number(response: &Response, header: &str) -> u64 {
    response.headers()[header].to_str().unwrap().parse().unwrap()
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Sends 11 concurrent requests. Returns the 10 allowed responses by falling remaining quota, and the refused one.
async fn send_eleven(url: &str, id: &str) -> (Vec<Response>, Response) {
    let client = Client::new();
    let mut tasks = Vec::new();
    for _ in 0..11 {
        let (client, url, id) = (client.clone(), url.to_owned(), id.to_owned());
        tasks.push(tokio::spawn(async move { send(&client, &url, &id).await }));
    }
    let (mut passed, mut refused) = (Vec::new(), Vec::new());
    for task in tasks {
        let response = task.await.unwrap();
        if response.status() == 200 { passed.push(response) } else { refused.push(response) }
    }
    assert_eq!((passed.len(), refused.len()), (10, 1));
    passed.sort_by_key(|response| std::cmp::Reverse(number(response, "x-ratelimit-remaining")));
    (passed, refused.remove(0))
}

/// One token refills every 6 s, so this holds if 11 requests take less than that.
async fn assert_limits(url: &str) {
    let before = unix_now();
    let (passed, refused) = send_eleven(url, "c1").await;
    for (response, remaining) in passed.iter().zip((0..10).rev()) {
        assert_eq!(number(response, "x-ratelimit-limit"), 10);
        assert_eq!(number(response, "x-ratelimit-remaining"), remaining);
        let reset = number(response, "x-ratelimit-reset");
        assert!(
            reset > before && reset <= unix_now() + 61,
            "{reset} is not within 61 s of {before}"
        );
    }
    assert_eq!(refused.status(), 429);
    let wait = number(&refused, "retry-after");
    assert!((1..=6).contains(&wait), "{wait}");
    assert_eq!(refused.headers()["content-type"], "application/json");
    let body = refused.text().await.unwrap();
    let expected = format!(
        r#"{{"error":"rate_limit_exceeded","message":"Too many requests. Please wait {wait} seconds.","retry_after":{wait}}}"#
    );
    assert_eq!(body, expected);
    let other = send(&Client::new(), url, "c2").await;
    assert_eq!(number(&other, "x-ratelimit-remaining"), 9, "clients have separate limits");
    assert_eq!(other.text().await.unwrap(), "Hello!\n");
}

#[tokio::test]
async fn ten_of_eleven_concurrent_requests_pass() {
    let serving = Serving::start("axum_api", &[]);
    assert_limits(serving.url()).await;
}

#[tokio::test]
async fn processes_share_limits_over_redis() {
    let redis = Server::start(Flavor::Redis);
    let url = redis.url();
    let first = Serving::start("axum_api", &[("REDIS_URL", &url)]);
    let second = Serving::start("axum_api", &[("REDIS_URL", &url)]);
    assert_limits(first.url()).await;
    let response = send(&Client::new(), second.url(), "c2").await;
    assert_eq!(number(&response, "x-ratelimit-remaining"), 8);
}

#[tokio::test]
async fn killed_redis_causes_no_errors() {
    let redis = Server::start(Flavor::Redis);
    let mut serving = Serving::start("axum_api", &[("REDIS_URL", &redis.url())]);
    let client = Client::new();
    for _ in 0..3 {
        assert_eq!(send(&client, serving.url(), "c1").await.status(), 200);
    }
    redis.kill();
    let (passed, refused) = send_eleven(serving.url(), "c2").await;
    assert_eq!(number(&passed[0], "x-ratelimit-remaining"), 9);
    assert_eq!(refused.status(), 429);
    redis.restart();
    for _ in 0..5 {
        let status = send(&client, serving.url(), "c3").await.status();
        assert_eq!(status, 200);
    }
    assert!(serving.is_running());
}

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Sets the limit of client `c1` to 20 per minute and returns the status.
async fn put_override(url: &str, token: &str) -> u16 {
    let request = Client::new().put(format!("{url}/admin/external/clients/c1/limits"));
    let body = serde_json::json!({ "limits": [{ "limit": 20, "window_ms": 60_000 }] });
    let response = request.bearer_auth(token).json(&body).send().await.unwrap();
    response.status().as_u16()
}

#[tokio::test]
async fn serves_quota_metrics_and_admin_routes() {
    let serving = Serving::start("axum_api", &[("ADMIN_TOKEN", TOKEN)]);
    let (client, url) = (Client::new(), serving.url());
    let quota = send(&client, &format!("{url}/quota"), "c1").await.text().await.unwrap();
    assert!(quota.starts_with("external-api 60s: 9 of 10 left, full again in 6 s\n"), "{quota}");
    assert!(quota.contains("external-api 3600s: 99 of 100 left"), "{quota}");
    assert_eq!(put_override(url, "wrong").await, 401);
    assert_eq!(put_override(url, TOKEN).await, 200);
    assert_eq!(number(&send(&client, url, "c1").await, "x-ratelimit-limit"), 20);
    let metrics = client.get(format!("{url}/metrics")).send().await.unwrap().text().await.unwrap();
    for line in [
        r#"ratelimiter_requests_checked_total{result="allowed"} 2"#,
        r#"ratelimiter_requests_checked_total{result="blocked"} 0"#,
        "ratelimiter_check_duration_seconds_count 2",
    ] {
        assert!(metrics.lines().any(|found| found == line), "missing {line} in\n{metrics}");
    }
    assert!(!metrics.contains("c1"), "{metrics}");
}

#[tokio::test]
async fn admin_routes_are_absent_without_a_token() {
    let serving = Serving::start("axum_api", &[]);
    assert_eq!(put_override(serving.url(), TOKEN).await, 404);
}

#[tokio::test]
async fn processes_follow_overrides_over_redis() {
    let redis = Server::start(Flavor::Redis);
    let url = redis.url();
    let first = Serving::start("axum_api", &[("REDIS_URL", &url), ("ADMIN_TOKEN", TOKEN)]);
    // Follows overrides although it has no admin API.
    let second = Serving::start("axum_api", &[("REDIS_URL", &url)]);
    assert_eq!(put_override(first.url(), TOKEN).await, 200);
    let client = Client::new();
    let followed = tokio::time::timeout(MAX_WAIT, async {
        while number(&send(&client, second.url(), "c1").await, "x-ratelimit-limit") != 20 {
            tokio::task::yield_now().await;
        }
    });
    followed.await.expect("the other process follows");
}

#[test]
fn invalid_settings_are_named() {
    for (name, value) in
        [("PORT", "abc"), ("PORT", "70000"), ("REDIS_URL", "bogus"), ("ADMIN_TOKEN", "short")]
    {
        let process = run("axum_api", &[(name, value)]);
        assert_eq!(process.status.code(), Some(2), "{name}={value}");
        let stderr = String::from_utf8(process.stderr).unwrap();
        assert!(stderr.starts_with("axum_api: ") && stderr.contains(name), "{stderr}");
    }
}
