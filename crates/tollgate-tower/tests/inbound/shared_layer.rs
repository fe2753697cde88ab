//! One limit for all clones, workers and routes.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use http::{Request, StatusCode};
use tokio::sync::Barrier;
use tollgate_tower::{Header, RateLimitLayer};
use tower::ServiceExt;

use crate::fixture::{limiter, one};

/// How many of these requests at once are let in.
async fn admitted(app: Router, requests: usize) -> usize {
    let begin = Arc::new(Barrier::new(requests));
    let tasks: Vec<_> = (0..requests)
        .map(|nth| {
            let (app, begin) = (app.clone(), Arc::clone(&begin));
            tokio::spawn(async move {
                let path = if nth % 2 == 0 { "/a" } else { "/b" };
                let request = Request::get(path).header("x-client-id", "c1");
                let request = request.body(axum::body::Body::empty()).unwrap();
                begin.wait().await;
                app.oneshot(request).await.unwrap().status()
            })
        })
        .collect();
    let mut admitted = 0;
    for task in tasks {
        match task.await.unwrap() {
            StatusCode::OK => admitted += 1,
            status => assert_eq!(status, StatusCode::TOO_MANY_REQUESTS),
        }
    }
    admitted
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_1500_at_once_under_axum_exactly_the_limit_passes() {
    let (limiter, _) = limiter(one("500/min"));
    let client = Header::from_static("x-client-id");
    let layer = RateLimitLayer::builder(limiter).fact("client", client).build();
    // Each route has a clone of its own, and the router one more.
    let one = Router::new().route("/a", get(async || "a").layer(layer.clone()));
    let app = one.merge(Router::new().route("/b", get(async || "b")).layer(layer));
    assert_eq!(admitted(app, 1500).await, 500);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_given_back_under_load_is_there_again() {
    let (limiter, _) = limiter(one("500/min"));
    let client = Header::from_static("x-client-id");
    let layer = RateLimitLayer::builder(limiter).fact("client", client);
    let layer = layer.count_where(|response| response.status != StatusCode::OK).build();
    let app = Router::new().route("/a", get(async || "a")).route("/b", get(async || "b"));
    let app = app.layer(layer);
    for _ in 0..3 {
        assert!(admitted(app.clone(), 500).await == 500);
    }
}
