//! The stream reports accepted bytes, whatever the result of the write.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll, Waker};

use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex,
};
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::server;
use tollgate_testkit::server::Certificates;

use crate::address::TlsFiles;
use crate::connection::{Tls, TlsStream};
use crate::fixtures::acceptor;

const UNLIMITED: i64 = 1 << 40;
const BLOCKED: i64 = -1;

/// A socket that accepts a number of bytes and then fails, or blocks.
struct Socket {
    inner: DuplexStream,
    accepts: Arc<AtomicI64>,
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let accepts = self.accepts.load(Ordering::Relaxed);
        let Ok(max) = usize::try_from(accepts) else { return Poll::Pending };
        if max == 0 {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let part = &bytes[..max.min(bytes.len())];
        let written = Pin::new(&mut self.inner).poll_write(context, part);
        if let Poll::Ready(Ok(count)) = written {
            self.accepts.fetch_sub(i64::try_from(count).unwrap(), Ordering::Relaxed);
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

struct Pair {
    client: TlsStream<Socket>,
    server: server::TlsStream<DuplexStream>,
    accepts: Arc<AtomicI64>,
}

impl Pair {
    async fn connect() -> Self {
        let certificates = Certificates::new();
        let acceptor = acceptor(&certificates.server);
        let files = TlsFiles { ca: Some(certificates.ca.clone()), ..TlsFiles::default() };
        let (inner, other_end) = duplex(1 << 20);
        let accepts = Arc::new(AtomicI64::new(UNLIMITED));
        let connector = Tls::new(files, None).prepare().await.unwrap().clone();
        let socket = Socket { inner, accepts: Arc::clone(&accepts) };
        let name = ServerName::try_from("localhost").unwrap();
        let (client, server) =
            tokio::join!(connector.connect(name, socket), acceptor.accept(other_end));
        let client = TlsStream::new(client.unwrap(), false);
        Self { client, server: server.unwrap(), accepts }
    }

    fn write(&mut self, slices: &[&[u8]]) -> Poll<io::Result<usize>> {
        let slices: Vec<_> = slices.iter().map(|slice| IoSlice::new(slice)).collect();
        let context = &mut Context::from_waker(Waker::noop());
        Pin::new(&mut self.client).poll_write_vectored(context, &slices)
    }

    async fn flush(&mut self) -> io::Result<()> {
        poll_fn(|context| Pin::new(&mut self.client).poll_flush(context)).await
    }
}

#[tokio::test]
async fn bytes_that_may_have_left_count_as_accepted() {
    for accepts in [0, 10] {
        let mut pair = Pair::connect().await;
        pair.accepts.store(accepts, Ordering::Relaxed);
        assert!(matches!(pair.write(&[b"one", b"two"]), Poll::Ready(Ok(6))));
        // The next operation returns the error and accepts nothing.
        match accepts {
            0 => assert!(matches!(pair.write(&[b"three"]), Poll::Ready(Err(_)))),
            _ => assert!(pair.flush().await.is_err()),
        }
    }
}

#[tokio::test]
async fn accepts_nothing_while_earlier_bytes_wait() {
    let mut pair = Pair::connect().await;
    pair.accepts.store(BLOCKED, Ordering::Relaxed);
    assert!(matches!(pair.write(&[b"one"]), Poll::Ready(Ok(3))));
    assert!(pair.write(&[b"two"]).is_pending());
    pair.accepts.store(UNLIMITED, Ordering::Relaxed);
    // A flush sends the first write; the second was not accepted.
    pair.flush().await.unwrap();
    let mut received = [0; 3];
    pair.server.read_exact(&mut received).await.unwrap();
    assert_eq!(&received, b"one");
    pair.client.write_all(b"six").await.unwrap();
    pair.server.read_exact(&mut received).await.unwrap();
    assert_eq!(&received, b"six");
}

#[tokio::test]
async fn close_without_close_notify_is_end_of_stream() {
    let mut pair = Pair::connect().await;
    pair.server.write_all(b"last").await.unwrap();
    drop(pair.server);
    let mut received = Vec::new();
    assert_eq!(pair.client.read_to_end(&mut received).await.unwrap(), 4);
    assert_eq!(received, b"last");
}
