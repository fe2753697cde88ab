//! `POST /check_and_report` of limitador-server, on axum.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use limitador::limit::Context;
use serde::Deserialize;
use tokio::net::TcpListener;

use super::Limits;

/// The body of a request, as limitador-server defines it.
#[derive(Deserialize)]
struct CheckAndReport {
    namespace: String,
    values: HashMap<String, String>,
    delta: u64,
}

/// Serves the path until the process ends. Logs the listening address to standard error, as tollgate does.
pub(super) async fn serve(address: &str, limits: Limits) -> Result<(), Box<dyn Error>> {
    let router = Router::new().route("/check_and_report", post(check_and_report));
    let router = router.with_state(Arc::new(limits));
    let listener = TcpListener::bind(address).await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    Ok(axum::serve(listener, router).await?)
}

/// limitador-server returns the status and an empty body. The load generator expects the text of an allowed request.
async fn check_and_report(
    State(limits): State<Arc<Limits>>,
    Json(CheckAndReport { namespace, values, delta }): Json<CheckAndReport>,
) -> Response {
    let mut context = Context::default();
    context.list_binding("descriptors".to_owned(), vec![values]);
    match limits.0.check_rate_limited_and_update(&namespace.into(), &context, delta) {
        Ok(result) if !result.limited => {
            ([(CONTENT_TYPE, "application/json")], r#"{"allowed":true}"#).into_response()
        }
        Ok(_) => StatusCode::TOO_MANY_REQUESTS.into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
