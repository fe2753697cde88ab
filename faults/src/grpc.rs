//! A blocking client of Envoy's rate limit service, with one connection.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest, handshake};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tollgate_testkit::http2::{SHOULD_RATE_LIMIT, message};

use crate::canary::{CHECK_TOKEN, contains_secret};

/// Time-out of a call: longer than any node may take.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The code of `overall_code` for a request over its limit.
const OVER_LIMIT: u64 = 2;

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrpcReply {
    /// The service decided.
    Decided {
        /// Whether `overall_code` is `OVER_LIMIT`.
        is_over: bool,
        /// `limit_remaining` of the first descriptor.
        remaining: u64,
    },
    /// A status other than OK.
    Status {
        /// The gRPC code.
        code: u32,
        /// The message.
        message: String,
    },
}

/// A client with one connection. The connection makes progress only during calls.
#[derive(Debug)]
pub struct GrpcClient {
    runtime: Runtime,
    requests: SendRequest<Bytes>,
}

impl GrpcClient {
    /// Connects to a gRPC listener.
    ///
    /// # Errors
    /// The connection fails.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let requests = within(&runtime, async {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (requests, connection) = handshake(stream).await.map_err(io::Error::other)?;
            // Its error is that of the calls.
            drop(tokio::spawn(connection));
            Ok(requests)
        })?;
        Ok(Self { runtime, requests })
    }

    /// Sends one descriptor with these entries.
    ///
    /// # Errors
    /// There is no reply.
    pub fn check(&mut self, domain: &str, entries: &[(&str, &str)]) -> io::Result<GrpcReply> {
        let entries: Vec<_> = entries.iter().map(|(k, v)| (k.as_bytes(), v.as_bytes())).collect();
        self.call(&request(domain, &entries, None))
    }

    /// Sends a protobuf message.
    ///
    /// # Errors
    /// There is no reply.
    pub fn call(&mut self, protobuf: &[u8]) -> io::Result<GrpcReply> {
        let body = Bytes::from(message(protobuf));
        let requests = self.requests.clone();
        within(&self.runtime, exchange(requests, body))
    }

    /// Sends `begin`, and then `more` again and again until the node answers. Sends no more than the node's flow control allows.
    /// Returns the number of bytes sent, and the reply.
    ///
    /// # Errors
    /// There is no reply.
    pub fn send_until_answered(
        &mut self,
        begin: Bytes,
        more: Bytes,
    ) -> io::Result<(usize, GrpcReply)> {
        let requests = self.requests.clone();
        within(&self.runtime, async {
            let (response, sending) = begin_call(requests).await?;
            let mut upload = Upload { response, sending, part: begin, more, sent: 0 };
            let response = poll_fn(|context| upload.poll(context)).await;
            let reply = read_reply(response.map_err(io::Error::other)?).await?;
            Ok((upload.sent, reply))
        })
    }
}

/// A call whose body is sent until there is a response.
struct Upload {
    response: ResponseFuture,
    sending: SendStream<Bytes>,
    /// The rest of the current part of the body.
    part: Bytes,
    /// The next parts of the body.
    more: Bytes,
    /// The number of bytes sent.
    sent: usize,
}

impl Upload {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Response<RecvStream>, h2::Error>> {
        if let Poll::Ready(response) = Pin::new(&mut self.response).poll(context) {
            return Poll::Ready(response);
        }
        self.sending.reserve_capacity(self.part.len());
        match self.sending.poll_capacity(context) {
            Poll::Ready(Some(Ok(capacity))) => {
                let bytes = self.part.split_to(capacity.min(self.part.len()));
                if self.part.is_empty() {
                    self.part = self.more.clone();
                }
                self.sent += bytes.len();
                // Fails if the node has ended the call; its response has the reason.
                let _ = self.sending.send_data(bytes, false);
                // The connection is written in another task.
                context.waker().wake_by_ref();
            }
            // The node has ended the call, or allows no more bytes for now.
            Poll::Ready(Some(Err(_)) | None) | Poll::Pending => {}
        }
        Poll::Pending
    }
}

/// Runs a call with a time-out.
fn within<T>(runtime: &Runtime, call: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    runtime.block_on(async {
        let in_time = tokio::time::timeout(TIMEOUT, call).await;
        in_time.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    })
}

async fn exchange(requests: SendRequest<Bytes>, body: Bytes) -> io::Result<GrpcReply> {
    let (response, mut sending) = begin_call(requests).await?;
    // Fails if the node has refused the call already; its response has the reason.
    let _ = sending.send_data(body, true);
    read_reply(response.await.map_err(io::Error::other)?).await
}

/// Sends the head of a call.
async fn begin_call(
    requests: SendRequest<Bytes>,
) -> io::Result<(ResponseFuture, SendStream<Bytes>)> {
    let head = Request::post(format!("http://tollgate{SHOULD_RATE_LIMIT}"))
        .header("te", "trailers")
        .header("content-type", "application/grpc")
        .header("authorization", format!("Bearer {CHECK_TOKEN}"))
        .body(())
        .map_err(io::Error::other)?;
    let mut requests = requests.ready().await.map_err(io::Error::other)?;
    requests.send_request(head, false).map_err(io::Error::other)
}

async fn read_reply(response: Response<RecvStream>) -> io::Result<GrpcReply> {
    let (head, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk.map_err(io::Error::other)?;
        body.flow_control().release_capacity(chunk.len()).map_err(io::Error::other)?;
        bytes.extend_from_slice(&chunk);
    }
    let trailers = body.trailers().await.map_err(io::Error::other)?.unwrap_or_default();
    let text = |name| field(&trailers, name).or_else(|| field(&head.headers, name));
    let code = text("grpc-status").and_then(|code| code.parse().ok());
    match code.ok_or_else(|| io::Error::other(format!("no grpc-status: {}", head.status)))? {
        0 => Ok(decided(bytes.get(5..).unwrap_or_default())),
        code => Ok(GrpcReply::Status { code, message: text("grpc-message").unwrap_or_default() }),
    }
}

/// A header or trailer.
fn field(headers: &HeaderMap, name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(headers.get(name)?.as_bytes()).into_owned();
    assert!(!contains_secret(&text), "the response contains a secret: {text}");
    Some(text)
}

/// Encodes a request with one descriptor. `hits` is its `hits_addend`, which may be 0.
pub fn request(domain: &str, entries: &[(&[u8], &[u8])], hits: Option<u64>) -> Vec<u8> {
    let entry = |(key, value): &(&[u8], &[u8])| {
        bytes_field(1, &[bytes_field(1, key), bytes_field(2, value)].concat())
    };
    let mut descriptor: Vec<u8> = entries.iter().flat_map(entry).collect();
    if let Some(hits) = hits {
        let value = if hits == 0 { Vec::new() } else { [vec![1 << 3], varint(hits)].concat() };
        descriptor.extend(bytes_field(3, &value));
    }
    [bytes_field(1, domain.as_bytes()), bytes_field(2, &descriptor)].concat()
}

/// Encodes a protobuf field of bytes.
pub fn bytes_field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u64::try_from(bytes.len()).expect("the length fits u64");
    [vec![number << 3 | 2], varint(length), bytes.to_vec()].concat()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 128 {
        bytes.push(u8::try_from(number % 128).expect("seven bits") | 128);
        number /= 128;
    }
    bytes.push(u8::try_from(number).expect("seven bits"));
    bytes
}

fn decided(response: &[u8]) -> GrpcReply {
    let fields = fields(response);
    let number = |fields: &[Field], wanted| {
        let found = fields.iter().find(|field| field.number == wanted);
        found.map_or(0, |field| field.value)
    };
    let first = fields.iter().find(|field| field.number == 2);
    let status = first.map(|status| self::fields(&status.bytes)).unwrap_or_default();
    GrpcReply::Decided { is_over: number(&fields, 1) == OVER_LIMIT, remaining: number(&status, 3) }
}

/// A protobuf field: a number, or bytes.
struct Field {
    number: u64,
    value: u64,
    bytes: Vec<u8>,
}

fn fields(mut message: &[u8]) -> Vec<Field> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let tag = read_varint(&mut message);
        let value = read_varint(&mut message);
        let bytes = match tag & 7 {
            0 => Vec::new(),
            2 => {
                let length = usize::try_from(value).expect("a length");
                let (bytes, rest) = message.split_at(length);
                message = rest;
                bytes.to_vec()
            }
            other => panic!("no response has fields of wire type {other}"),
        };
        fields.push(Field { number: tag >> 3, value, bytes });
    }
    fields
}

fn read_varint(message: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((byte, rest)) = message.split_first() {
        *message = rest;
        number |= u64::from(byte & 127) << shift;
        shift += 7;
        if byte & 128 == 0 {
            break;
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use super::{GrpcReply, bytes_field, decided, request};

    #[test]
    fn requests_are_protobuf() {
        let expected = b"\x0a\x01d\x12\x08\x0a\x06\x0a\x01k\x12\x01v".to_vec();
        assert_eq!(request("d", &[(b"k", b"v")], None), expected);
        let peek = request("d", &[(b"k", b"v")], Some(0));
        assert!(peek.ends_with(b"\x1a\x00"), "{peek:?}");
        let many = request("d", &[(b"k", b"v")], Some(300));
        assert!(many.ends_with(b"\x1a\x03\x08\xac\x02"), "{many:?}");
    }

    #[test]
    fn responses_are_read() {
        let status = bytes_field(2, b"\x08\x01\x18\xac\x02");
        let response = [b"\x08\x01".to_vec(), status].concat();
        assert_eq!(decided(&response), GrpcReply::Decided { is_over: false, remaining: 300 });
        let over = GrpcReply::Decided { is_over: true, remaining: 0 };
        assert_eq!(decided(b"\x08\x02"), over);
    }
}
