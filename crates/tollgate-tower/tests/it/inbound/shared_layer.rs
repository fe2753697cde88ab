//! All clones, workers and routes share one limit.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use http::{Request, StatusCode};
use tokio::sync::Barrier;
use tollgate_tower::{Header, RateLimitLayer};
use tower::ServiceExt;

use crate::inbound::fixture::{limiter, single_limit};

/// Sends concurrent requests and returns the number admitted.
async fn admitted(app: Router, requests: usize) -> usize {
    let barrier = Arc::new(Barrier::new(requests));
    let tasks: Vec<_> = (0..requests)
        .map(|nth| {
            let (app, barrier) = (app.clone(), Arc::clone(&barrier));
            tokio::spawn(async move {
                let path = if nth % 2 == 0 { "/a" } else { "/b" };
                let request = Request::get(path).header("x-client-id", "c1");
                let request = request.body(axum::body::Body::empty()).unwrap();
                barrier.wait().await;
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
async fn concurrent_axum_requests_admit_exactly_the_limit() {
    let (limiter, _) = limiter(single_limit("500/min"));
    let client = Header::from_static("x-client-id");
    let layer = RateLimitLayer::builder(limiter).fact("client", client).build();
    // Each route has its own clone of the layer, and so has the router.
    let routes = Router::new().route("/a", get(async || "a").layer(layer.clone()));
    let app = routes.merge(Router::new().route("/b", get(async || "b")).layer(layer));
    assert_eq!(admitted(app, 1500).await, 500);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn refunds_under_load_restore_the_quota() {
    let (limiter, _) = limiter(single_limit("500/min"));
    let client = Header::from_static("x-client-id");
    let layer = RateLimitLayer::builder(limiter).fact("client", client);
    let layer = layer.count_responses_if(|response| response.status != StatusCode::OK).build();
    let app = Router::new().route("/a", get(async || "a")).route("/b", get(async || "b"));
    let app = app.layer(layer);
    for _ in 0..3 {
        assert!(admitted(app.clone(), 500).await == 500);
    }
}
