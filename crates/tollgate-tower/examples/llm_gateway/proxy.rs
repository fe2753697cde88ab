//! Forwards requests to the upstream, and streams its responses to the client without buffering.

use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Map, Value};

use crate::limits;

/// The maximum size of a request. Prompts are read as a whole, responses are not.
const MAX_REQUEST: usize = 8 << 20;

/// The fields of a request that limit its output, in tokens.
const MAX_OUTPUT: [&str; 3] = ["max_completion_tokens", "max_tokens", "max_output_tokens"];

/// Headers that concern one connection only.
const HOP_BY_HOP: [HeaderName; 6] =
    [CONNECTION, HeaderName::from_static("keep-alive"), TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// The API that requests are forwarded to.
pub(crate) struct Upstream {
    base: Uri,
    client: Client<HttpsConnector<HttpConnector>, Body>,
}

impl Upstream {
    pub(crate) fn new(url: &str) -> Result<Self, String> {
        let base: Uri = url.parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
        if !matches!(base.scheme_str(), Some("http" | "https")) || base.query().is_some() {
            return Err("must be a URL such as https://api.openai.com".to_owned());
        }
        let connector = HttpsConnectorBuilder::new().with_webpki_roots().https_or_http();
        let connector = connector.enable_http1().build();
        Ok(Self { base, client: Client::builder(TokioExecutor::new()).build(connector) })
    }

    /// Returns the URL of a request at the upstream.
    fn url(&self, path: Option<&PathAndQuery>) -> Result<Uri, http::Error> {
        let path = path.map_or("/", PathAndQuery::as_str);
        let prefix = self.base.path().trim_end_matches('/');
        let mut parts = self.base.clone().into_parts();
        parts.path_and_query = Some(format!("{prefix}{path}").parse()?);
        Ok(Uri::from_parts(parts)?)
    }
}

/// Reads a request as a whole, and adds the estimate of its tokens.
pub(crate) async fn read_call(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST).await else {
        return error(StatusCode::PAYLOAD_TOO_LARGE, "the request is longer than 8 MiB");
    };
    let size = body.len();
    let call = serde_json::from_slice::<Map<String, Value>>(&body).unwrap_or_default();
    let max_output = MAX_OUTPUT.iter().find_map(|name| call.get(*name)?.as_u64());
    let body = request_usage(parts.uri.path(), body, call);
    let mut request = Request::from_parts(parts, Body::from(body));
    limits::add_estimate(&mut request, size, max_output);
    next.run(request).await
}

/// Forwards a request that the limits allow.
pub(crate) async fn forward(State(upstream): State<Arc<Upstream>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let Ok(url) = upstream.url(parts.uri.path_and_query()) else {
        return error(StatusCode::BAD_REQUEST, "the path is invalid");
    };
    parts.uri = url;
    remove_hop_by_hop(&mut parts.headers);
    // The client sets the first two. The usage of a compressed response cannot be read.
    for name in [HOST, CONTENT_LENGTH, ACCEPT_ENCODING] {
        parts.headers.remove(name);
    }
    match upstream.client.request(Request::from_parts(parts, body)).await {
        Ok(response) => {
            let mut response = response.map(Body::new);
            remove_hop_by_hop(response.headers_mut());
            response
        }
        Err(reason) => {
            eprintln!("upstream failed: {reason}");
            error(StatusCode::BAD_GATEWAY, "the upstream is unavailable")
        }
    }
}

/// Requests the usage of a streamed completion, which OpenAI otherwise does not report. The client receives it as well, as
/// one more event.
fn request_usage(path: &str, body: Bytes, mut call: Map<String, Value>) -> Bytes {
    if !path.ends_with("/completions") || call.get("stream") != Some(&Value::Bool(true)) {
        return body;
    }
    let options = call.entry("stream_options").or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(options) = options else { return body };
    options.insert("include_usage".to_owned(), Value::Bool(true));
    serde_json::to_vec(&call).map_or(body, Bytes::from)
}

/// Removes the headers that concern the connection, and those that `Connection` names.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named =
        named.flat_map(|names| names.split(',')).filter_map(|name| name.trim().parse().ok());
    let named: Vec<HeaderName> = named.collect();
    for name in named.into_iter().chain(HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Creates an error in the format of OpenAI.
fn error(status: StatusCode, message: &str) -> Response {
    let body = serde_json::json!({ "error": { "message": message, "type": "gateway_error" } });
    (status, axum::Json(body)).into_response()
}
