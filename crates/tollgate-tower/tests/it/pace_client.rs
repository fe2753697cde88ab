//! The paced reqwest client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error};
use tokio::net::TcpListener;
use tollgate::{MemoryStore, Store};
use tollgate_tower::outbound::{AcquireError, NamedLimiter};
use tollgate_tower::pace::PaceMiddleware;

use crate::outbound_fixture::{per_century, redis, redis_store, refusal};

/// A server that responds `games` twice and then 429.
async fn serve() -> SocketAddr {
    let respond = async |State(calls): State<Arc<AtomicU64>>| {
        if calls.fetch_add(1, Ordering::SeqCst) < 2 {
            return (StatusCode::OK, [("retry-after", "0")], "games");
        }
        (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "3000")], "enough")
    };
    let routes = Router::new().route("/games", get(respond)).with_state(Arc::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    address
}

fn client<S: Store + 'static>(limiter: &NamedLimiter<S>) -> ClientWithMiddleware {
    let direct = reqwest::Client::builder().no_proxy().build().unwrap();
    ClientBuilder::new(direct).with(PaceMiddleware::new(limiter.clone())).build()
}

/// A call site without rate limiting code.
async fn games(client: &ClientWithMiddleware, server: SocketAddr) -> Result<(u16, String), Error> {
    let response = client.get(format!("http://{server}/games")).send().await?;
    Ok((response.status().as_u16(), response.text().await?))
}

#[tokio::test]
async fn call_sites_do_not_change() {
    let server = serve().await;
    let limiter = NamedLimiter::new(MemoryStore::new(), per_century(2).immediate());
    let client = client(&limiter);
    for _ in 0..2 {
        assert_eq!(games(&client, server).await.unwrap(), (200, "games".to_owned()));
    }
    // The limiter refuses before the request is sent.
    let Error::Middleware(error) = games(&client, server).await.unwrap_err() else {
        panic!("the limiter did not refuse");
    };
    assert!(matches!(error.downcast_ref(), Some(AcquireError::Exceeded(_))), "{error:?}");
    assert_eq!((limiter.counts().acquired, limiter.counts().refused), (2, 1));
}

#[tokio::test]
async fn server_refusal_pauses_every_process() {
    let server = serve().await;
    let one = NamedLimiter::new(redis_store(&redis().url(), "client:"), per_century(100));
    let two = NamedLimiter::new(redis_store(&redis().url(), "client:"), per_century(100));
    let client = client(&one);
    for expected in [(200, "games"), (200, "games"), (429, "enough")] {
        assert_eq!(games(&client, server).await.unwrap(), (expected.0, expected.1.to_owned()));
    }
    let wait = refusal(two.try_acquire().await).1.unwrap();
    assert!((2000..=3000).contains(&wait.as_secs()), "{wait:?}");
    two.reset().await.unwrap();
    assert!(two.try_acquire().await.is_ok());
}
