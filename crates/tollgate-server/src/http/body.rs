//! Request bodies: checks the content type and reads the body within limits of size, time and memory.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use axum::body::HttpBody;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::SizeHint;
use hyper::header::{CONTENT_TYPE, EXPECT, HeaderMap};
use tokio::time::timeout;

use crate::error::{ApiError, ApiErrorKind};
use crate::listener::{IncompleteRequest, TooSlow};

/// Maximum time to receive a whole body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of a single request body in bytes.
pub(super) const MAX_BODY: usize = 64 * 1024;
/// Maximum size of a batch body in bytes.
pub(super) const MAX_BATCH_BODY: usize = 1024 * 1024;

/// Bytes of a body that are not charged, because a connection buffers more than that anyway.
const UNCHARGED: usize = 8 * 1024;

const JSON: &str = "application/json";

/// Maximum size of a body with a permit in bytes: a permit names up to 16 keys of the maximum length.
pub(super) const MAX_PERMIT_BODY: usize = 2 * 1024 * 1024;

/// Maximum number of bytes to discard after the error for a body that is too large.
const MAX_DISCARDED: usize = 1024 * 1024;
/// Maximum time to discard them.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// The body of a request, of hyper or of the router.
pub(super) trait RequestBody: HttpBody<Data = Bytes> + Send + Unpin + 'static {}

impl<B: HttpBody<Data = Bytes> + Send + Unpin + 'static> RequestBody for B {}

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unread {
    TooLarge,
    TooSlow,
    EndedEarly,
}

/// Reads the JSON body of a request, at most `max` bytes.
pub(super) async fn read<B: RequestBody>(
    request: Request<B>,
    max: usize,
) -> Result<Bytes, ApiError> {
    let (head, mut body) = request.into_parts();
    let content_type = ensure_json(&head.headers);
    let read = {
        let mut collecting = pin!(collect(&mut body, max));
        // Usually the body arrived with the head and needs no timer.
        match poll_fn(|context| Poll::Ready(collecting.as_mut().poll(context))).await {
            Poll::Ready(read) => Ok(read),
            Poll::Pending => timeout(BODY_TIMEOUT, collecting).await,
        }
    };
    if read == Ok(Err(Unread::TooLarge)) && !head.headers.contains_key(EXPECT) {
        tokio::spawn(timeout(DISCARD_TIMEOUT, discard(body)));
    }
    content_type?;
    let error = |kind, detail: String| Err(ApiError::new(kind, detail));
    match read {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(Unread::EndedEarly)) => Err(ApiError::invalid("the request body ended early")),
        Ok(Err(Unread::TooLarge)) => {
            error(ApiErrorKind::TooLarge, format!("the request body exceeds {max} bytes"))
        }
        Ok(Err(Unread::TooSlow)) => {
            let detail = "the request body arrived more slowly than others that need the memory";
            error(ApiErrorKind::Timeout, detail.to_owned())
        }
        Err(_) => {
            let seconds = BODY_TIMEOUT.as_secs();
            let detail = format!("the request body did not arrive within {seconds} s");
            error(ApiErrorKind::Timeout, detail)
        }
    }
}

/// Receives the rest of a body that is too large, so that a client that is still sending can read the error: closing the
/// connection with unread data would discard it.
async fn discard<B: RequestBody>(mut body: B) {
    let mut discarded = 0;
    while discarded < MAX_DISCARDED
        && let Some(Ok(frame)) = body.frame().await
    {
        discarded += frame.data_ref().map_or(0, Bytes::len);
    }
}

/// Returns the capacity for a body of which `length` bytes have arrived: twice as much, but not more than was announced,
/// and not more than is free of charge if `length` is.
fn capacity(length: usize, size_hint: &SizeHint, max: usize) -> usize {
    let rest = size_hint.upper().map_or(max, |rest| usize::try_from(rest).unwrap_or(max));
    let announced = length.saturating_add(rest).min(max);
    announced.min(if length <= UNCHARGED { UNCHARGED } else { length.saturating_mul(2) })
}

async fn collect<B: RequestBody>(body: &mut B, max: usize) -> Result<Bytes, Unread> {
    if body.size_hint().lower() > max as u64 {
        return Err(Unread::TooLarge);
    }
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    let mut charged: Option<IncompleteRequest> = None;
    loop {
        let frame = match &mut charged {
            None => body.frame().await,
            Some(request) => tokio::select! {
                biased;
                frame = body.frame() => frame,
                TooSlow = request.dropped() => return Err(Unread::TooSlow),
            },
        };
        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(|_| Unread::EndedEarly)?.into_data() else { continue };
        let length = first.len() + all.len() + data.len();
        if length > max {
            return Err(Unread::TooLarge);
        }
        // Usually the first frame is the whole body and is used without a copy.
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if length > all.capacity() {
            let capacity = capacity(length, &body.size_hint(), max);
            if length > UNCHARGED {
                let request = charged.get_or_insert_with(IncompleteRequest::new);
                request.charge(capacity).await.map_err(|TooSlow| Unread::TooSlow)?;
            }
            all.reserve(capacity - all.len());
        }
        all.extend_from_slice(&std::mem::take(&mut first));
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
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
