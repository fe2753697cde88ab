//! What every response tells of limits.

use std::time::Duration;

use tollgate::HeaderStyle;

use axum::Router;
use axum::routing::get as route;
use tower::ServiceExt;

use crate::fixture::{ask, by_client, get, hello, one, ten_a_minute};

#[tokio::test]
async fn every_response_tells_of_the_limit_most_in_the_way() {
    let (builder, clock) = by_client(ten_a_minute());
    let service = hello(builder);
    for left in (0..10).rev() {
        let answer = ask(&service, get("/", "c1")).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, "hello"));
        assert_eq!(answer.header("x-ratelimit-limit"), Some("10"));
        assert_eq!(answer.header("x-ratelimit-remaining"), Some(&*left.to_string()));
        // A token is back every 6 s; the quarter of a second rounds up.
        let reset = 1_702_200_000 + (10 - left) * 6 + 1;
        assert_eq!(answer.header("x-ratelimit-reset"), Some(&*reset.to_string()));
        assert_eq!(answer.header("retry-after"), None);
    }
    let refused = ask(&service, get("/", "c1")).await;
    assert_eq!(refused.status.as_u16(), 429);
    assert_eq!(refused.header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(refused.header("retry-after"), Some("6"));
    assert_eq!(refused.header("cache-control"), Some("no-store"));
    clock.advance(Duration::from_secs(6));
    assert_eq!(ask(&service, get("/", "c1")).await.status.as_u16(), 200);
}

#[tokio::test]
async fn styles_are_combined() {
    let (builder, _) = by_client(ten_a_minute());
    let styles = [HeaderStyle::Draft11, HeaderStyle::Draft6, HeaderStyle::Draft11];
    let service = hello(builder.header_styles(styles));
    let answer = ask(&service, get("/", "c1")).await;
    let policy = r#""60s";q=10;w=60,"3600s";q=100;w=3600"#;
    assert_eq!(answer.header("ratelimit-policy"), Some(policy));
    assert_eq!(answer.header("ratelimit"), Some(r#""60s";r=9;t=6"#));
    assert_eq!(answer.header("ratelimit-limit"), Some("10"));
    assert_eq!(answer.header("ratelimit-reset"), Some("6"));
    assert_eq!(answer.header("x-ratelimit-limit"), None);
    assert_eq!(answer.headers.get_all("ratelimit").iter().count(), 1);
}

#[tokio::test]
async fn deltas_are_seconds_from_now() {
    let (builder, _) = by_client(ten_a_minute());
    let service = hello(builder.header_styles([HeaderStyle::XDelta]));
    assert_eq!(ask(&service, get("/", "c1")).await.header("x-ratelimit-reset"), Some("6"));
}

#[tokio::test]
async fn no_style_tells_nothing() {
    let (builder, _) = by_client(ten_a_minute());
    let service = hello(builder.header_styles([]));
    let answer = ask(&service, get("/", "c1")).await;
    assert!(answer.headers.keys().all(|name| !name.as_str().contains("ratelimit")));
}

#[tokio::test]
async fn browsers_may_read_them_where_that_is_said() {
    let (builder, _) = by_client(ten_a_minute());
    let service = hello(builder.expose_headers());
    let list = "x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, retry-after";
    for _ in 0..11 {
        let answer = ask(&service, get("/", "c1")).await;
        assert_eq!(answer.header("access-control-expose-headers"), Some(list));
    }
    let (builder, _) = by_client(ten_a_minute());
    let answer = ask(&hello(builder), get("/", "c1")).await;
    assert_eq!(answer.header("access-control-expose-headers"), None);
}

/// Of two layers the one is told of that is more in the way, whichever is within.
#[tokio::test]
async fn of_stacked_layers_the_stricter_is_told_of() {
    for style in HeaderStyle::ALL {
        for (inner, outer) in [("2/min", "5/h"), ("5/h", "2/min")] {
            let (within, _) = by_client(one(inner));
            let (around, _) = by_client(one(outer));
            let within = within.header_styles([style]).build();
            let around = around.header_styles([style]).build();
            let app: Router = Router::new().route("/", route(async || "hello").layer(within));
            let told = app.layer(around).oneshot(get("/", "c1")).await.unwrap();
            let field = style.fields()[1];
            let left = told.headers()[field].to_str().unwrap();
            assert!(left == "1" || left.contains(";r=1;"), "{style:?} {inner} {outer}: {left}");
        }
    }
}
