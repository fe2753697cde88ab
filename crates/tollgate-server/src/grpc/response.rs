//! Responses of calls, and how they are sent on a stream.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use hyper::Response;
use hyper::body::{Body as _, Frame};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use tonic::body::Body;
use tonic::metadata::GRPC_CONTENT_TYPE;
use tonic::{Code, Status};

/// The value of `grpc-status` for a call that succeeded.
const OK: HeaderValue = HeaderValue::from_static("0");

/// The response of a call.
#[derive(Debug)]
pub(super) enum CallResponse {
    /// The body of a call that succeeded, with all of its messages.
    Complete(Bytes),
    /// The response of a tonic service, or an error.
    Http(Response<Body>),
}

impl CallResponse {
    /// Returns whether the client ended its request before it was complete.
    pub(super) fn is_aborted(&self) -> bool {
        matches!(self, Self::Http(response) if error_code(response) == Some(Code::Aborted))
    }

    /// Sends the response. Errors are caused by the client, which has reset the stream or closed the connection.
    pub(super) async fn send(self, stream: &mut SendResponse<Bytes>) -> Result<(), h2::Error> {
        match self {
            Self::Complete(body) => send_complete(body, stream),
            Self::Http(response) => send_http(response, stream).await,
        }
    }
}

/// Returns the status of an error, which has no message; `None` for other responses.
pub(super) fn error_code(response: &Response<Body>) -> Option<Code> {
    response.headers().get(Status::GRPC_STATUS).map(|code| Code::from_bytes(code.as_bytes()))
}

/// Queues all frames. HTTP/2 sends them as the client permits.
fn send_complete(body: Bytes, stream: &mut SendResponse<Bytes>) -> Result<(), h2::Error> {
    let mut head = Response::new(());
    head.headers_mut().insert(CONTENT_TYPE, GRPC_CONTENT_TYPE);
    let mut trailers = HeaderMap::new();
    trailers.insert(Status::GRPC_STATUS, OK);
    let mut stream = stream.send_response(head, false)?;
    stream.send_data(body, false)?;
    stream.send_trailers(trailers)
}

async fn send_http(
    response: Response<Body>,
    stream: &mut SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    let (head, body) = response.into_parts();
    let is_end = body.is_end_stream();
    let mut stream = stream.send_response(Response::from_parts(head, ()), is_end)?;
    if is_end {
        return Ok(());
    }
    send_body(body, &mut stream).await
}

/// Sends the frames of a body when they are available, until it ends or the client resets the stream.
async fn send_body(mut body: Body, stream: &mut SendStream<Bytes>) -> Result<(), h2::Error> {
    loop {
        let next = poll_fn(|context| {
            if let Poll::Ready(reason) = stream.poll_reset(context) {
                return Poll::Ready(Err(reason.map_or_else(|error| error, h2::Error::from)));
            }
            Pin::new(&mut body).poll_frame(context).map(Ok)
        });
        let frame = match next.await? {
            Some(Ok(frame)) => frame,
            Some(Err(_)) => {
                stream.send_reset(Reason::INTERNAL_ERROR);
                return Ok(());
            }
            None => return stream.send_data(Bytes::new(), true),
        };
        match frame.into_data().map_err(Frame::into_trailers) {
            Ok(data) => {
                poll_fn(|context| poll_capacity(stream, context)).await?;
                stream.send_data(data, false)?;
            }
            Err(Ok(trailers)) => return stream.send_trailers(trailers),
            // There are no other kinds.
            Err(Err(_)) => {}
        }
    }
}

/// Waits until the client permits more data. A part of a chunk suffices, HTTP/2 queues the rest.
fn poll_capacity(
    stream: &mut SendStream<Bytes>,
    context: &mut Context<'_>,
) -> Poll<Result<(), h2::Error>> {
    stream.reserve_capacity(1);
    while stream.capacity() == 0 {
        match ready!(stream.poll_capacity(context)) {
            Some(Ok(_)) => {}
            Some(Err(error)) => return Poll::Ready(Err(error)),
            None => return Poll::Ready(Err(Reason::CANCEL.into())),
        }
    }
    Poll::Ready(Ok(()))
}
