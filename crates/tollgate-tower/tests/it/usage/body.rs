//! The body wrapper: frames pass unchanged, and the usage is reported once.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::mpsc::{Receiver, channel};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use tollgate_tower::usage::{TokenUsage, Usage, UsageBody, UsageReader};

use super::fixtures::FIXTURES;

const EVENT: &str = "data: {\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n";
const OF_EVENT: Usage = Usage::Exact(TokenUsage { input: 3, output: 4 });

/// A body that yields these results; `None` is a frame that is not ready.
#[derive(Default)]
struct Script(Vec<Option<Result<Frame<Bytes>, &'static str>>>);

impl Body for Script {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        if self.0.is_empty() {
            return Poll::Ready(None);
        }
        self.0.remove(0).map_or(Poll::Pending, |frame| Poll::Ready(Some(frame)))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(77)
    }
}

fn data(text: &str) -> Option<Result<Frame<Bytes>, &'static str>> {
    Some(Ok(Frame::data(Bytes::copy_from_slice(text.as_bytes()))))
}

fn wrapped(
    script: Vec<Option<Result<Frame<Bytes>, &'static str>>>,
) -> (UsageBody<Script>, Receiver<Usage>) {
    let (sender, receiver) = channel();
    let reader = Some(UsageReader::event_stream());
    (UsageBody::new(Script(script), reader, move |usage| sender.send(usage).unwrap()), receiver)
}

/// Polls once.
fn poll(body: &mut UsageBody<Script>) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
    pin!(body).poll_frame(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn bytes_pass_unchanged() {
    for fixture in FIXTURES {
        let (sender, receiver) = channel();
        let report = move |usage| sender.send(usage).unwrap();
        let body = UsageBody::new(
            Full::new(Bytes::from_static(fixture.body)),
            Some((fixture.reader)()),
            report,
        );
        let bytes = body.collect().await.unwrap().to_bytes();
        assert_eq!(bytes, fixture.body);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [fixture.usage]);
    }
}

#[test]
fn each_frame_passes_at_once() {
    let mut trailers = HeaderMap::new();
    trailers.insert("x", "1".parse().unwrap());
    let last = Some(Ok(Frame::trailers(trailers.clone())));
    let (mut body, receiver) = wrapped(vec![data("data: {\"us"), None, data(&EVENT[10..]), last]);
    assert_eq!(body.size_hint().exact(), Some(77));
    let Poll::Ready(Some(Ok(frame))) = poll(&mut body) else { panic!("not ready") };
    assert_eq!(frame.into_data().unwrap(), "data: {\"us");
    assert!(poll(&mut body).is_pending());
    let Poll::Ready(Some(Ok(frame))) = poll(&mut body) else { panic!("not ready") };
    assert_eq!(frame.into_data().unwrap(), EVENT[10..]);
    let Poll::Ready(Some(Ok(frame))) = poll(&mut body) else { panic!("not ready") };
    assert_eq!(frame.into_trailers().unwrap(), trailers);
    assert!(receiver.try_recv().is_err(), "the usage is reported at the end");
    assert!(matches!(poll(&mut body), Poll::Ready(None)));
    assert_eq!(receiver.try_recv(), Ok(OF_EVENT));
}

#[test]
fn usage_is_reported_once_at_the_end() {
    let (mut body, receiver) = wrapped(vec![data(EVENT)]);
    while !matches!(poll(&mut body), Poll::Ready(None)) {}
    assert!(matches!(poll(&mut body), Poll::Ready(None)));
    drop(body);
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [OF_EVENT]);
}

#[test]
fn usage_is_reported_once_at_an_error() {
    let (mut body, receiver) = wrapped(vec![data(EVENT), Some(Err("reset")), data(EVENT)]);
    assert!(poll(&mut body).is_ready());
    assert!(matches!(poll(&mut body), Poll::Ready(Some(Err("reset")))));
    assert_eq!(receiver.try_recv(), Ok(OF_EVENT));
    assert!(poll(&mut body).is_ready());
    drop(body);
    assert_eq!(receiver.iter().count(), 0);
}

#[test]
fn usage_so_far_is_reported_when_the_client_disconnects() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"12345\"}}]}\n\n";
    let (mut body, receiver) = wrapped(vec![data(text), data(EVENT)]);
    assert!(poll(&mut body).is_ready());
    drop(body);
    let expected = Usage::Estimated { input: None, output: 2 };
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [expected]);
}

#[test]
fn unread_body_reports_unknown_usage() {
    let (body, receiver) = wrapped(vec![data(EVENT)]);
    drop(body);
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [Usage::Unknown]);
}

/// A body of a service can be wrapped by axum, tonic, hyper and reqwest.
#[tokio::test]
async fn wrapped_response_is_read_by_its_content_type() {
    for (content_type, expected) in [("text/event-stream", OF_EVENT), ("text/html", Usage::Unknown)]
    {
        let (sender, receiver) = channel();
        let response = Response::builder().header("content-type", content_type);
        let response = response.body(axum::body::Body::from(EVENT)).unwrap();
        let response = UsageBody::wrap(response, move |usage| sender.send(usage).unwrap());
        let body = axum::body::Body::new(response.into_body());
        assert_eq!(axum::body::to_bytes(body, 1000).await.unwrap(), EVENT);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [expected]);
    }
    fn assert_send_sync<T: Send + Sync>(_: &T) {}
    let body = UsageBody::new(Full::<Bytes>::default(), None, |_| {});
    assert_send_sync(&body);
    let _: Result<_, Infallible> = body.collect().await;
}
