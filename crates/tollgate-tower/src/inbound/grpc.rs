//! gRPC refusals: a status with the time to wait, and no body.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};

use crate::facts::RequestHead;

const MEDIA_TYPE: &[u8] = b"application/grpc";
const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// gRPC status codes of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    InvalidArgument = 3,
    ResourceExhausted = 8,
    Unavailable = 14,
}

/// Returns whether a request is gRPC. gRPC-Web is not, because its clients read the status from the body.
pub(super) fn is_grpc(request: &RequestHead<'_>) -> bool {
    let content_type = request.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let rest = content_type.and_then(|value| value.strip_prefix(MEDIA_TYPE));
    rest.is_some_and(|rest| matches!(rest, [] | [b'+' | b';' | b' ', ..]))
}

/// Builds a refusal. `message` must be printable ASCII without `%`, so that it needs no escaping.
pub(super) fn refusal(
    code: Code,
    message: &'static str,
    wait: Option<Duration>,
) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", HeaderValue::from(code as u16));
    headers.insert("grpc-message", HeaderValue::from_static(message));
    let details = STANDARD_NO_PAD.encode(status(code, message, wait));
    if let (Some(_), Ok(details)) = (wait, HeaderValue::try_from(details)) {
        headers.insert("grpc-status-details-bin", details);
    }
    response
}

/// Encodes a `google.rpc.Status { code, message, details: [RetryInfo { retry_delay }] }`.
fn status(code: Code, message: &str, wait: Option<Duration>) -> Vec<u8> {
    let mut status = Vec::with_capacity(128);
    uint_field(&mut status, 1, code as u64);
    bytes_field(&mut status, 2, message.as_bytes());
    if let Some(wait) = wait {
        let mut delay = Vec::new();
        uint_field(&mut delay, 1, wait.as_secs());
        uint_field(&mut delay, 2, u64::from(wait.subsec_nanos()));
        let mut info = Vec::new();
        bytes_field(&mut info, 1, &delay);
        let mut any = Vec::new();
        bytes_field(&mut any, 1, RETRY_INFO.as_bytes());
        bytes_field(&mut any, 2, &info);
        bytes_field(&mut status, 3, &any);
    }
    status
}

/// Encodes a Protocol Buffers integer field; zero is omitted.
fn uint_field(out: &mut Vec<u8>, field: u64, value: u64) {
    if value > 0 {
        varint(out, field << 3);
        varint(out, value);
    }
}

/// Encodes a Protocol Buffers bytes field.
fn bytes_field(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, u64::try_from(value.len()).unwrap_or(u64::MAX));
    out.extend_from_slice(value);
}

/// Encodes seven bits per byte, lowest first.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}
