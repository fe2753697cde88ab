//! The yardstick: axum answering the same to everyone.

use std::io::Write;
use std::net::SocketAddr;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::runtime;

use super::answer::ALLOWED;
use crate::Outcome;

/// Answers `POST path` with JSON of so many bytes, or of the fewest that it takes.
pub fn router(path: &str, bytes: usize) -> Router {
    let body: &'static str = body(bytes).leak();
    Router::new().route(path, post(async move || ([(CONTENT_TYPE, "application/json")], body)))
}

fn body(bytes: usize) -> String {
    let (begin, end) = (format!("{ALLOWED},\"padding\":\""), "\"}");
    let padding = "x".repeat(bytes.saturating_sub(begin.len() + end.len()));
    [&begin, padding.as_str(), end].concat()
}

/// Serves it as `axum::serve` is usually run, with as many workers as the one core it gets. Says on
/// standard error where, as tollgate does.
///
/// # Errors
/// An address that cannot be listened on.
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
    fn a_body_is_json_of_the_length_asked_for() {
        assert_eq!(body(0), r#"{"allowed":true,"padding":""}"#);
        assert_eq!(body(32), r#"{"allowed":true,"padding":"xxx"}"#);
        assert_eq!(body(345).len(), 345);
    }
}
