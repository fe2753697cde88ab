//! An answer that does not end: events, as they come.

use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response};
use tokio::time::timeout;

use super::events::{Event, Events, TooLong};
use super::{AskError, Server};

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// How much is read of an answer that is no stream.
const MOST: usize = 64 * 1024;

/// How a service answers who wants to follow it.
#[derive(Debug)]
pub(crate) enum Followed {
    Events(EventStream),
    /// It does not tell: a status, and a body.
    Otherwise(u16, String),
}

/// Events of a service. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct EventStream {
    body: Incoming,
    events: Events,
    /// After how long without a byte the service counts as lost.
    silence: Duration,
}

impl Server {
    /// Asks for events. Silence is counted once the service has begun to answer.
    pub(crate) async fn follow(
        &self,
        path: &str,
        token: Option<&str>,
        silence: Duration,
    ) -> Result<Followed, AskError> {
        let mut request = self.request(Method::GET, path, None, token)?;
        request.headers_mut().insert(ACCEPT, EVENTS);
        self.patiently(async {
            let response = self.respond(request).await?;
            if is_stream(&response) {
                let (body, events) = (response.into_body(), Events::default());
                return Ok(Followed::Events(EventStream { body, events, silence }));
            }
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), MOST).collect().await?.to_bytes();
            Ok(Followed::Otherwise(status, String::from_utf8_lossy(&body).into_owned()))
        })
        .await
    }
}

fn is_stream(response: &Response<Incoming>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    response.status() == 200 && kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

impl EventStream {
    /// The next event, or why there will be none. Where this is not waited for to its end, silence begins anew.
    pub(crate) async fn next(&mut self) -> Result<Event, String> {
        loop {
            if let Some(event) = self.events.next() {
                return Ok(event);
            }
            let silent = |_| format!("nothing for {} s", self.silence.as_secs());
            let frame = timeout(self.silence, self.body.frame()).await.map_err(silent)?;
            let frame = frame.ok_or("the stream has ended")?;
            let frame = frame.map_err(|error| told(&error))?;
            if let Some(bytes) = frame.data_ref() {
                self.events.feed(bytes).map_err(|TooLong| "it tells something without an end")?;
            }
        }
    }
}

/// The cause, which hyper keeps under its own words.
fn told(error: &hyper::Error) -> String {
    let cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

    /// Follows somebody who answers with these bytes; their end of it stays open as long as what is returned.
    async fn follow(answer: &str) -> (Result<Followed, AskError>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let server = Server { authority, tls: None, patience: Duration::from_secs(10) };
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let read = stream.read(&mut [0; 4096]).await.unwrap();
            assert_ne!(read, 0);
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream
        };
        tokio::join!(server.follow("/api/live", None, Duration::from_millis(200)), serving)
    }

    fn run(test: impl Future<Output = ()>) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn silence_is_a_loss() {
        run(async {
            let (followed, _open) = follow(&format!("{HEAD}data: 1\n\n")).await;
            let Ok(Followed::Events(mut stream)) = followed else { panic!("{followed:?}") };
            assert_eq!(stream.next().await.unwrap().data, "1");
            assert_eq!(stream.next().await.unwrap_err(), "nothing for 0 s");
        });
    }

    #[test]
    fn the_end_is_told() {
        run(async {
            let (followed, open) = follow(&format!("{HEAD}data: 1\n\ndata: 2\n\n")).await;
            let Ok(Followed::Events(mut stream)) = followed else { panic!("{followed:?}") };
            drop(open);
            assert_eq!(stream.next().await.unwrap().data, "1");
            assert_eq!(stream.next().await.unwrap().data, "2");
            assert_eq!(stream.next().await.unwrap_err(), "the stream has ended");
        });
    }

    #[test]
    fn a_page_is_no_stream() {
        run(async {
            let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi";
            let (followed, _open) = follow(page).await;
            assert!(matches!(followed, Ok(Followed::Otherwise(200, body)) if body == "hi"));
            let endless = "HTTP/1.1 500 Oh\r\ncontent-length: 99999\r\n\r\n".to_owned();
            let (followed, _open) = follow(&(endless + &"x".repeat(99_999))).await;
            assert!(matches!(followed, Err(AskError::NoAnswer(_))), "{followed:?}");
        });
    }
}
