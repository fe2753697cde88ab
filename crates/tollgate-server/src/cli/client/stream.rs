//! Endless responses: a stream of server-sent events.

use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response};
use tokio::time::timeout;

use super::events::{Event, Events, TooLong};
use super::{ClientError, Server};

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Maximum size in bytes of a response that is not an event stream.
const MAX_BODY: usize = 64 * 1024;

/// Response to a request for events.
#[derive(Debug)]
pub(crate) enum FollowReply {
    Events(EventStream),
    /// Status and body of a response that is not an event stream.
    Other(u16, String),
}

/// Open event stream. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct EventStream {
    body: Incoming,
    events: Events,
    /// Time without a byte after which the connection counts as lost.
    idle_timeout: Duration,
}

impl Server {
    /// Requests an event stream. The idle timeout starts with the response.
    pub(crate) async fn follow(
        &self,
        path: &str,
        token: Option<&str>,
        idle_timeout: Duration,
    ) -> Result<FollowReply, ClientError> {
        let mut request = self.request(Method::GET, path, None, token)?;
        request.headers_mut().insert(ACCEPT, EVENTS);
        self.within_timeout(async {
            let response = self.exchange(request).await?;
            if is_stream(&response) {
                let (body, events) = (response.into_body(), Events::default());
                return Ok(FollowReply::Events(EventStream { body, events, idle_timeout }));
            }
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), MAX_BODY).collect().await?.to_bytes();
            let body = String::from_utf8_lossy(&body).into_owned();
            self.ensure_plain(status, &body)?;
            Ok(FollowReply::Other(status, body))
        })
        .await
    }
}

fn is_stream(response: &Response<Incoming>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    response.status() == 200 && kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

impl EventStream {
    /// Returns the next event, or the reason why the stream ended. Cancelling this restarts the idle timeout.
    pub(crate) async fn next(&mut self) -> Result<Event, String> {
        loop {
            if let Some(event) = self.events.next() {
                return Ok(event);
            }
            let idle = |_| format!("no data for {} s", self.idle_timeout.as_secs());
            let frame = timeout(self.idle_timeout, self.body.frame()).await.map_err(idle)?;
            let frame = frame.ok_or("the service closed the stream")?;
            let frame = frame.map_err(|error| cause_of(&error))?;
            if let Some(bytes) = frame.data_ref() {
                self.events
                    .feed(bytes)
                    .map_err(|TooLong| "the service sent an event of more than 4 MiB")?;
            }
        }
    }
}

/// Returns the cause of a hyper error, which is more specific than the error itself.
fn cause_of(error: &hyper::Error) -> String {
    let cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

    /// Requests events from a server that responds with these bytes. The returned socket keeps its side open.
    async fn follow(response: &str) -> (Result<FollowReply, ClientError>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let server = Server { authority, tls: None, timeout: Duration::from_secs(10) };
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let read = stream.read(&mut [0; 4096]).await.unwrap();
            assert_ne!(read, 0);
            stream.write_all(response.as_bytes()).await.unwrap();
            stream
        };
        tokio::join!(server.follow("/api/live", None, Duration::from_millis(200)), serving)
    }

    fn run(test: impl Future<Output = ()>) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn idle_stream_times_out() {
        run(async {
            let (reply, _socket) = follow(&format!("{HEAD}data: 1\n\n")).await;
            let Ok(FollowReply::Events(mut stream)) = reply else { panic!("{reply:?}") };
            assert_eq!(stream.next().await.unwrap().data, "1");
            assert_eq!(stream.next().await.unwrap_err(), "no data for 0 s");
        });
    }

    #[test]
    fn end_of_stream_is_an_error() {
        run(async {
            let (reply, socket) = follow(&format!("{HEAD}data: 1\n\ndata: 2\n\n")).await;
            let Ok(FollowReply::Events(mut stream)) = reply else { panic!("{reply:?}") };
            drop(socket);
            assert_eq!(stream.next().await.unwrap().data, "1");
            assert_eq!(stream.next().await.unwrap().data, "2");
            assert_eq!(stream.next().await.unwrap_err(), "the service closed the stream");
        });
    }

    #[test]
    fn other_responses_are_returned_with_limited_size() {
        run(async {
            let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi";
            let (reply, _socket) = follow(page).await;
            assert!(matches!(reply, Ok(FollowReply::Other(200, body)) if body == "hi"));
            let endless = "HTTP/1.1 500 Oh\r\ncontent-length: 99999\r\n\r\n".to_owned();
            let (reply, _socket) = follow(&(endless + &"x".repeat(99_999))).await;
            assert!(matches!(reply, Err(ClientError::NoAnswer(_))), "{reply:?}");
        });
    }
}
