//! The baseline server: axum with a constant response.

use std::io::Write;
use std::net::SocketAddr;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::runtime;

use super::response::ALLOWED;
use crate::Outcome;

/// Creates a router that responds to `GET` and `POST path` with a JSON body of `bytes` bytes, or of the minimum length;
/// with an empty body if `bytes` is 0.
pub fn router(path: &str, bytes: usize) -> Router {
    let body: &'static str = body(bytes).leak();
    let respond = async move || ([(CONTENT_TYPE, "application/json")], body);
    Router::new().route(path, post(respond).get(respond))
}

fn body(bytes: usize) -> String {
    if bytes == 0 {
        return String::new();
    }
    let (begin, end) = (format!("{ALLOWED},\"padding\":\""), "\"}");
    let padding = "x".repeat(bytes.saturating_sub(begin.len() + end.len()));
    [&begin, padding.as_str(), end].concat()
}

/// Runs `axum::serve` with one worker, since the process has one core. Logs the listening address
/// to standard error, as tollgate does.
///
/// # Errors
/// The address cannot be bound.
pub fn serve(listen: SocketAddr, router: Router) -> Outcome<()> {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await?;
        writeln!(std::io::stderr(), "listening on http://{}", listener.local_addr()?)?;
        Ok(axum::serve(listener, router).await?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_is_json_of_the_requested_length() {
        assert_eq!(body(0), "");
        assert_eq!(body(1), r#"{"allowed":true,"padding":""}"#);
        assert_eq!(body(32), r#"{"allowed":true,"padding":"xxx"}"#);
        assert_eq!(body(345).len(), 345);
    }
}
