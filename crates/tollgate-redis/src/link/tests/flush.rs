//! What has been taken leaves, though nothing else happens.

use std::future::poll_fn;
use std::task::Poll;

use tokio::io::{AsyncReadExt, BufStream, DuplexStream, duplex};
use tokio::time::{Instant, timeout};

use super::echo;
use crate::connection::{Connection, Transport};
use crate::fixtures::LONG;
use crate::link::shared::{Pending, Shared};
use crate::link::wire::Wire;
use crate::resp::{Decoder, REPLY_CAP};

/// Keeps what it takes until it is flushed, as TLS may.
impl Transport for BufStream<DuplexStream> {}

#[tokio::test]
async fn what_was_taken_is_flushed_until_it_has_left() {
    let bytes = echo(12345).into_bytes();
    let shared = Shared::new(1);
    let deadline = Instant::now() + LONG;
    let then = Box::new(|_| {});
    let pending =
        Pending { bytes: bytes.clone(), reply_cap: REPLY_CAP, replies_before: 0, deadline, then };
    assert!(shared.queue(pending).is_ok());

    // So narrow that no flush is done at once.
    let (near, mut far) = duplex(4);
    let stream = Box::new(BufStream::new(near));
    let mut wire = Wire::new(Connection { stream, decoder: Decoder::default(), info: None });
    wire.take(&shared);
    let drive = poll_fn(|context| {
        wire.write(context).unwrap();
        Poll::<()>::Pending
    });
    let mut heard = vec![0; bytes.len()];
    let hear = async {
        tokio::select! { () = drive => {}, read = far.read_exact(&mut heard) => drop(read.unwrap()) }
    };
    timeout(LONG, hear).await.unwrap();
    assert_eq!(heard, bytes);
}
