//! Request bodies: checks the content type and reads the body within limits of size, time and memory.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use axum::body::HttpBody;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::Request;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use tokio::time::timeout;

use crate::error::{ApiError, ApiErrorKind};
use crate::listener::reserve_memory;

/// Maximum time to receive a whole body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of a single request body in bytes.
pub(super) const MAX_BODY: usize = 64 * 1024;
/// Maximum size of a batch body in bytes.
pub(super) const MAX_BATCH_BODY: usize = 1024 * 1024;

/// Bytes of a body that need no reservation, because a connection buffers more than that anyway. Otherwise a few
/// clients that announce long bodies and send nothing could block every body that arrives after its head.
const UNRESERVED: usize = 8 * 1024;

const JSON: &str = "application/json";

/// Maximum size of a body with a permit in bytes: a permit names up to 16 keys of the maximum length.
pub(super) const MAX_PERMIT_BODY: usize = 2 * 1024 * 1024;

/// Bytes to discard after the maximum, so that a client that is still sending can read the error.
const MAX_DISCARDED: usize = 1024 * 1024;

/// Reads the JSON body of a request, at most `max` bytes.
pub(super) async fn read<B>(request: Request<B>, max: usize) -> Result<Bytes, ApiError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let (head, body) = request.into_parts();
    let content_type = ensure_json(&head.headers);
    let mut collecting = pin!(collect(body, max));
    // Usually the body arrived with the head and needs no timer.
    let read = match poll_fn(|context| Poll::Ready(collecting.as_mut().poll(context))).await {
        Poll::Ready(read) => Ok(read),
        Poll::Pending => timeout(BODY_TIMEOUT, collecting).await,
    };
    content_type?;
    read.unwrap_or_else(|_| {
        let seconds = BODY_TIMEOUT.as_secs();
        let detail = format!("the request body did not arrive within {seconds} s");
        Err(ApiError::new(ApiErrorKind::Timeout, detail))
    })
}

/// Returns `length` as `usize`, capped at `max`.
fn bounded(length: u64, max: usize) -> usize {
    usize::try_from(length).unwrap_or(max).min(max)
}

async fn collect<B>(mut body: B, max: usize) -> Result<Bytes, ApiError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let too_large = || {
        let detail = format!("the request body exceeds {max} bytes");
        ApiError::new(ApiErrorKind::TooLarge, detail)
    };
    // If the head announces too many bytes, none of them are stored.
    let is_too_large = body.size_hint().lower() > max as u64;
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    let (mut length, mut reservation) = (0, None);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ApiError::invalid("the request body ended early"))?;
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length > max + MAX_DISCARDED {
            return Err(too_large());
        }
        if is_too_large || length > max {
            continue;
        }
        // Usually the first frame is the whole body and is used without a copy.
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if length > UNRESERVED && reservation.is_none() {
            let rest = body.size_hint().upper().map(|upper| bounded(upper, max));
            reservation = reserve_memory(rest.map_or(max, |rest| length + rest)).await;
            // With a known length, allocate once: growing would need twice the memory.
            all.reserve(first.len() + data.len() + rest.unwrap_or(0));
        }
        all.extend_from_slice(&std::mem::take(&mut first));
        all.extend_from_slice(&data);
    }
    match length {
        length if is_too_large || length > max => Err(too_large()),
        _ if all.is_empty() => Ok(first),
        _ => Ok(all.freeze()),
    }
}

fn ensure_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let wrong = |detail: &str| Err(ApiError::new(ApiErrorKind::MediaType, detail));
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return wrong("send exactly one Content-Type header: application/json");
    };
    if value == JSON {
        return Ok(());
    }
    let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    if essence.trim_ascii().eq_ignore_ascii_case(JSON.as_bytes()) {
        return Ok(());
    }
    wrong("Content-Type must be application/json (curl: use --json)")
}
