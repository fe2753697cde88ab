//! Asking a running service.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum AskError {
    /// The URL is not one that can be asked.
    Url(String),
    /// Nobody answered.
    NoAnswer(String),
}

/// Posts JSON to a path of a service; its status and body.
pub(crate) async fn post(
    server: &str,
    path: &str,
    body: String,
) -> Result<(u16, String), AskError> {
    let authority = authority_of(server)?;
    match timeout(PATIENCE, exchange(&authority, path, body)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(AskError::NoAnswer(error.to_string())),
        Err(_) => Err(AskError::NoAnswer(format!("nothing within {} s", PATIENCE.as_secs()))),
    }
}

/// `host:port` of an http URL.
fn authority_of(server: &str) -> Result<String, AskError> {
    let wrong = |reason: &str| AskError::Url(format!("--server: {server:?} {reason}"));
    let uri: Uri = server.parse().map_err(|_| wrong("is not a URL"))?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => return Err(wrong("needs TLS, which this version cannot speak")),
        _ => return Err(wrong("does not begin with http://")),
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(wrong("has a path; give only http://HOST:PORT"));
    }
    let authority = uri.authority().ok_or_else(|| wrong("has no host"))?;
    if authority.as_str().contains('@') {
        // Without showing it: it may be a password.
        let reason = "--server: names a user, which a service has not; give only http://HOST:PORT";
        return Err(AskError::Url(reason.to_owned()));
    }
    match (authority.port_u16(), authority.as_str() == authority.host()) {
        (Some(port), _) => Ok(format!("{}:{port}", authority.host())),
        (None, true) => Ok(format!("{}:80", authority.host())),
        (None, false) => Err(wrong("is not http://HOST:PORT")),
    }
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

async fn exchange(authority: &str, path: &str, body: String) -> Result<(u16, String), AnyError> {
    let stream = TcpStream::connect(authority).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::post(path)
        .header(HOST, authority)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json")
        .body(Full::new(Bytes::from(body)))?;
    let response = sender.send_request(request).await?;
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await?.to_bytes();
    Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
}
