//! Accepted bytes are flushed without further commands.

use std::future::poll_fn;
use std::task::Poll;

use tokio::io::{AsyncReadExt, BufStream, DuplexStream, duplex};
use tokio::time::{Instant, timeout};

use super::echo;
use crate::connection::{Connection, Transport};
use crate::fixtures::LONG;
use crate::link::command_queue::{CommandQueue, Pending};
use crate::link::pipeline::Pipeline;
use crate::resp::{Decoder, REPLY_CAP};

/// Buffers writes until a flush, as TLS may.
impl Transport for BufStream<DuplexStream> {}

#[tokio::test]
async fn accepted_bytes_are_flushed_completely() {
    let bytes = echo(12345).into_bytes();
    let queue = CommandQueue::new(1);
    let deadline = Instant::now() + LONG;
    let on_reply = Box::new(|_| {});
    let pending = Pending {
        bytes: bytes.clone(),
        reply_cap: REPLY_CAP,
        skipped_replies: 0,
        deadline,
        gate: None,
        on_reply,
    };
    assert!(queue.push(pending, Instant::now()).is_ok());

    // The buffer is too small for one flush.
    let (near, mut far) = duplex(4);
    let stream = Box::new(BufStream::new(near));
    let mut pipeline =
        Pipeline::new(Connection { stream, decoder: Decoder::default(), info: None });
    pipeline.take(&queue);
    let drive = poll_fn(|context| {
        pipeline.write(context).unwrap();
        Poll::<()>::Pending
    });
    let mut received = vec![0; bytes.len()];
    let receive = async {
        tokio::select! { () = drive => {}, read = far.read_exact(&mut received) => drop(read.unwrap()) }
    };
    timeout(LONG, receive).await.unwrap();
    assert_eq!(received, bytes);
}
