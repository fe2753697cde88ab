//! Rate limit headers.

use std::time::Duration;

use tollgate::HeaderStyle;

use axum::Router;
use axum::routing::get as route;
use tower::ServiceExt;

use crate::inbound::fixture::{get, hello, layer_by_client, send, single_limit, ten_per_minute};

#[tokio::test]
async fn headers_describe_the_most_restrictive_limit() {
    let (builder, clock) = layer_by_client(ten_per_minute());
    let service = hello(builder);
    for remaining in (0..10).rev() {
        let response = send(&service, get("/", "c1")).await;
        assert_eq!((response.status.as_u16(), response.text()), (200, "hello"));
        assert_eq!(response.header("x-ratelimit-limit"), Some("10"));
        assert_eq!(response.header("x-ratelimit-remaining"), Some(&*remaining.to_string()));
        // One token refills every 6 s; the quarter of a second rounds up.
        let reset = 1_702_200_000 + (10 - remaining) * 6 + 1;
        assert_eq!(response.header("x-ratelimit-reset"), Some(&*reset.to_string()));
        assert_eq!(response.header("retry-after"), None);
    }
    let refused = send(&service, get("/", "c1")).await;
    assert_eq!(refused.status.as_u16(), 429);
    assert_eq!(refused.header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(refused.header("retry-after"), Some("6"));
    assert_eq!(refused.header("cache-control"), Some("no-store"));
    clock.advance(Duration::from_secs(6));
    assert_eq!(send(&service, get("/", "c1")).await.status.as_u16(), 200);
}

#[tokio::test]
async fn combines_styles() {
    let (builder, _) = layer_by_client(ten_per_minute());
    let styles = [HeaderStyle::Draft11, HeaderStyle::Draft6, HeaderStyle::Draft11];
    let service = hello(builder.header_styles(styles));
    let response = send(&service, get("/", "c1")).await;
    let policy = r#""60s";q=10;w=60,"3600s";q=100;w=3600"#;
    assert_eq!(response.header("ratelimit-policy"), Some(policy));
    assert_eq!(response.header("ratelimit"), Some(r#""60s";r=9;t=6"#));
    assert_eq!(response.header("ratelimit-limit"), Some("10"));
    assert_eq!(response.header("ratelimit-reset"), Some("6"));
    assert_eq!(response.header("x-ratelimit-limit"), None);
    assert_eq!(response.headers.get_all("ratelimit").iter().count(), 1);
}

#[tokio::test]
async fn x_delta_reset_is_seconds_from_now() {
    let (builder, _) = layer_by_client(ten_per_minute());
    let service = hello(builder.header_styles([HeaderStyle::XDelta]));
    assert_eq!(send(&service, get("/", "c1")).await.header("x-ratelimit-reset"), Some("6"));
}

#[tokio::test]
async fn provider_style_names_the_unit() {
    let (builder, _) = layer_by_client(ten_per_minute());
    let service = hello(builder.header_styles([HeaderStyle::Provider]).expose_headers());
    for reset in ["6s", "12s"] {
        let response = send(&service, get("/", "c1")).await;
        assert_eq!(response.header("x-ratelimit-limit-requests"), Some("10"));
        assert_eq!(response.header("x-ratelimit-reset-requests"), Some(reset));
        assert_eq!(response.header("x-ratelimit-limit-tokens"), None);
        let exposed = response.header("access-control-expose-headers").unwrap();
        assert!(exposed.contains("x-ratelimit-remaining-requests"), "{exposed}");
    }
    for _ in 0..8 {
        assert_eq!(send(&service, get("/", "c1")).await.status.as_u16(), 200);
    }
    let refused = send(&service, get("/", "c1")).await;
    assert_eq!(refused.header("x-ratelimit-remaining-requests"), Some("0"));
    assert_eq!(refused.header("x-ratelimit-reset-requests"), Some("1m0s"));
}

#[tokio::test]
async fn empty_style_list_disables_headers() {
    let (builder, _) = layer_by_client(ten_per_minute());
    let service = hello(builder.header_styles([]));
    let response = send(&service, get("/", "c1")).await;
    assert!(response.headers.keys().all(|name| !name.as_str().contains("ratelimit")));
}

#[tokio::test]
async fn expose_headers_adds_the_cors_header() {
    let (builder, _) = layer_by_client(ten_per_minute());
    let service = hello(builder.expose_headers());
    let list = "x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, retry-after";
    for _ in 0..11 {
        let response = send(&service, get("/", "c1")).await;
        assert_eq!(response.header("access-control-expose-headers"), Some(list));
    }
    let (builder, _) = layer_by_client(ten_per_minute());
    let response = send(&hello(builder), get("/", "c1")).await;
    assert_eq!(response.header("access-control-expose-headers"), None);
}

#[tokio::test]
async fn stacked_layers_show_the_stricter_limit() {
    for style in HeaderStyle::ALL {
        for (inner, outer) in [("2/min", "5/h"), ("5/h", "2/min")] {
            let (inner_layer, _) = layer_by_client(single_limit(inner));
            let (outer_layer, _) = layer_by_client(single_limit(outer));
            let inner_layer = inner_layer.header_styles([style]).build();
            let outer_layer = outer_layer.header_styles([style]).build();
            let app: Router = Router::new().route("/", route(async || "hello").layer(inner_layer));
            let response = app.layer(outer_layer).oneshot(get("/", "c1")).await.unwrap();
            let field = style.fields()[1];
            let value = response.headers()[field].to_str().unwrap();
            assert!(value == "1" || value.contains(";r=1;"), "{style:?} {inner} {outer}: {value}");
        }
    }
}
