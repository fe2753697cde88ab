//! Reading a body: JSON by its type, whole, in time, and no longer than it may be.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use axum::body::HttpBody;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::Request;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::error::{ApiError, ApiErrorKind};

/// A body must have come whole within this time.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The most bytes of one question.
pub(super) const MAX_BODY: usize = 64 * 1024;
/// The most bytes of a batch.
pub(super) const MAX_BATCH_BODY: usize = 1024 * 1024;

/// All bodies that are still on their way take no more memory than this many kibibytes together, however
/// many connections send them; those beyond wait. What was announced and has not come takes none.
const MAX_UNFINISHED: u32 = 64 * 1024;
static UNFINISHED: Semaphore = Semaphore::const_new(MAX_UNFINISHED as usize);

/// So much of a body needs no room among those: a connection holds more than that anyway. Else a few clients
/// who announce much and send nothing could hold up everybody whose body comes after its head.
const SMALL: usize = 8 * 1024;

const JSON: &str = "application/json";

/// The most bytes of a permit: it names up to 16 keys, each as long as keys may be.
pub(super) const MAX_PERMIT_BODY: usize = 2 * 1024 * 1024;

/// A client that is still sending hears why only once it listens: this much more is read for it.
const COURTESY: usize = 1024 * 1024;

/// The JSON body of a request.
pub(super) async fn read<B>(request: Request<B>, most: usize) -> Result<Bytes, ApiError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let (head, body) = request.into_parts();
    let typed = is_json(&head.headers);
    let mut collecting = pin!(collect(body, most));
    // Mostly the body came with the head, and needs no timer.
    let read = match poll_fn(|context| Poll::Ready(collecting.as_mut().poll(context))).await {
        Poll::Ready(read) => Ok(read),
        Poll::Pending => timeout(BODY_TIMEOUT, collecting).await,
    };
    typed?;
    read.unwrap_or_else(|_| {
        let seconds = BODY_TIMEOUT.as_secs();
        let detail = format!("the body did not arrive within {seconds} s");
        Err(ApiError::new(ApiErrorKind::Slow, detail))
    })
}

/// Waits until there is room for one more unfinished body of this length.
async fn share(length: usize) -> Option<SemaphorePermit<'static>> {
    let kibibytes = u32::try_from(length.div_ceil(1024)).unwrap_or(u32::MAX);
    // Never closed, so there is always a permit in the end.
    UNFINISHED.acquire_many(kibibytes.min(MAX_UNFINISHED)).await.ok()
}

/// A length as memory can hold it, at most so much.
fn bounded(length: u64, most: usize) -> usize {
    usize::try_from(length).unwrap_or(most).min(most)
}

async fn collect<B>(mut body: B, most: usize) -> Result<Bytes, ApiError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let too_large = || {
        let detail = format!("the body is longer than {most} bytes");
        ApiError::new(ApiErrorKind::TooLarge, detail)
    };
    // Where the head says that the body is too long, nothing of it is kept.
    let is_too_large = body.size_hint().lower() > most as u64;
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    let (mut length, mut room) = (0, None);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ApiError::invalid("the body broke off"))?;
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length > most + COURTESY {
            return Err(too_large());
        }
        if is_too_large || length > most {
            continue;
        }
        // Almost always the first frame is all of it, and is used as it came.
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if length > SMALL && room.is_none() {
            // All of it at once: were it taken bit by bit, all could wait for each other.
            let rest = body.size_hint().upper().map(|upper| bounded(upper, most));
            room = share(rest.map_or(most, |rest| length + rest)).await;
            // Where the length is known: growing would hold it twice over.
            all.reserve(first.len() + data.len() + rest.unwrap_or(0));
        }
        all.extend_from_slice(&std::mem::take(&mut first));
        all.extend_from_slice(&data);
    }
    match length {
        length if is_too_large || length > most => Err(too_large()),
        _ if all.is_empty() => Ok(first),
        _ => Ok(all.freeze()),
    }
}

fn is_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let wrong = |detail: &str| Err(ApiError::new(ApiErrorKind::MediaType, detail));
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return wrong("one Content-Type is wanted: application/json");
    };
    if value == JSON {
        return Ok(());
    }
    let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    if essence.trim_ascii().eq_ignore_ascii_case(JSON.as_bytes()) {
        return Ok(());
    }
    wrong("the Content-Type must be application/json (curl: --json)")
}
