//! Ten a minute and a hundred an hour for each client.

use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::{Client, Response};
use tollgate_testkit::server::{Flavor, Server};

use crate::process::{Serving, run};

async fn ask(client: &Client, url: &str, id: &str) -> Response {
    client.get(url).header("X-Client-Id", id).send().await.expect("it is served")
}

fn number(response: &Response, header: &str) -> u64 {
    response.headers()[header].to_str().unwrap().parse().unwrap()
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Eleven at one instant, then what each was told, the allowed ones first.
async fn eleven(url: &str, id: &str) -> (Vec<Response>, Response) {
    let client = Client::new();
    let mut tasks = Vec::new();
    for _ in 0..11 {
        let (client, url, id) = (client.clone(), url.to_owned(), id.to_owned());
        tasks.push(tokio::spawn(async move { ask(&client, &url, &id).await }));
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

/// A token is back every six seconds, so this holds if eleven requests take less than that.
async fn holds_for(url: &str) {
    let before = unix_now();
    let (passed, refused) = eleven(url, "c1").await;
    for (response, left) in passed.iter().zip((0..10).rev()) {
        assert_eq!(number(response, "x-ratelimit-limit"), 10);
        assert_eq!(number(response, "x-ratelimit-remaining"), left);
        let reset = number(response, "x-ratelimit-reset");
        assert!(reset > before && reset <= unix_now() + 61, "{reset} is no time near {before}");
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
    let other = ask(&Client::new(), url, "c2").await;
    assert_eq!(number(&other, "x-ratelimit-remaining"), 9, "clients are apart");
    assert_eq!(other.text().await.unwrap(), "Hello!\n");
}

#[tokio::test]
async fn of_eleven_at_one_instant_ten_pass() {
    let serving = Serving::start("axum_api", &[]);
    holds_for(serving.url()).await;
}

#[tokio::test]
async fn so_they_do_over_redis_however_many_processes_serve() {
    let redis = Server::start(Flavor::Redis);
    let url = redis.url();
    let one = Serving::start("axum_api", &[("REDIS_URL", &url)]);
    let other = Serving::start("axum_api", &[("REDIS_URL", &url)]);
    holds_for(one.url()).await;
    let known = ask(&Client::new(), other.url(), "c2").await;
    assert_eq!(number(&known, "x-ratelimit-remaining"), 8);
}

#[tokio::test]
async fn a_redis_that_is_killed_is_not_noticed_but_in_the_counts() {
    let redis = Server::start(Flavor::Redis);
    let mut serving = Serving::start("axum_api", &[("REDIS_URL", &redis.url())]);
    let client = Client::new();
    for _ in 0..3 {
        assert_eq!(ask(&client, serving.url(), "c1").await.status(), 200);
    }
    redis.kill();
    let (passed, refused) = eleven(serving.url(), "c2").await;
    assert_eq!(number(&passed[0], "x-ratelimit-remaining"), 9);
    assert_eq!(refused.status(), 429);
    redis.restart();
    for _ in 0..5 {
        let status = ask(&client, serving.url(), "c3").await.status();
        assert_eq!(status, 200);
    }
    assert!(serving.is_running());
}

#[test]
fn bad_settings_are_named() {
    for (name, value) in [("PORT", "abc"), ("PORT", "70000"), ("REDIS_URL", "bogus")] {
        let ended = run("axum_api", &[(name, value)]);
        assert_eq!(ended.status.code(), Some(2), "{name}={value}");
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(said.starts_with("axum_api: ") && said.contains(name), "{said}");
    }
}
