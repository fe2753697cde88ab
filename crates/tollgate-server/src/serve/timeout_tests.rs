//! Time-outs of RESP connections, on a paused clock.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::listener::serve_stream;
use crate::resp::Resp;
use crate::serve::fixtures::{PEER, front_end_counters, service};

/// Serves a connection. Returns the end of the client, and what is dropped to drain the server.
async fn connect_draining() -> (DuplexStream, watch::Sender<()>) {
    let service = service().await;
    let (client, server) = duplex(4096);
    let counters = front_end_counters("resp");
    let drain = watch::Sender::new(());
    let subscribed = drain.subscribe();
    tokio::spawn(async move {
        let protocol = Arc::new(Resp::new(service));
        serve_stream(protocol, server, PEER, (subscribed, counters)).await;
    });
    (client, drain)
}

/// Serves a connection of a server that does not drain.
async fn connect() -> DuplexStream {
    let (client, drain) = connect_draining().await;
    tokio::spawn(async move {
        let _kept = drain;
        std::future::pending::<()>().await;
    });
    client
}

async fn ping(client: &mut DuplexStream) {
    client.write_all(b"PING\r\n").await.expect("it is sent");
    let mut reply = [0; 7];
    client.read_exact(&mut reply).await.expect("a reply");
    assert_eq!(&reply, b"+PONG\r\n");
}

/// Asserts that the server closes the connection, without a reply, so many seconds from now.
async fn assert_closed_after(client: &mut DuplexStream, seconds: RangeInclusive<u64>) {
    let start = Instant::now();
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.expect("the end of the connection");
    assert_eq!(rest, b"");
    let waited = start.elapsed().as_secs();
    assert!(seconds.contains(&waited), "{waited} s");
}

#[tokio::test(start_paused = true)]
async fn idle_connection_is_closed_after_two_minutes() {
    assert_closed_after(&mut connect().await, 117..=123).await;
    let mut client = connect().await;
    for _ in 0..5 {
        ping(&mut client).await;
        sleep(Duration::from_secs(110)).await;
    }
    ping(&mut client).await;
    assert_closed_after(&mut client, 117..=123).await;
}

#[tokio::test(start_paused = true)]
async fn incomplete_command_is_closed_after_ten_seconds() {
    for begin in [&b"*1\r\n$4\r\nPI"[..], b"PIN", b"*"] {
        let mut client = connect().await;
        ping(&mut client).await;
        client.write_all(begin).await.expect("it is sent");
        assert_closed_after(&mut client, 7..=10).await;
        // It may arrive together with a complete command.
        let mut client = connect().await;
        client.write_all(&[b"PING\r\n", begin].concat()).await.expect("it is sent");
        client.read_exact(&mut [0; 7]).await.expect("the reply to the complete command");
        assert_closed_after(&mut client, 7..=10).await;
    }
    // More bytes of the same command do not extend the time.
    let mut client = connect().await;
    let slow = async |client: &mut DuplexStream| {
        for _ in 0..60 {
            sleep(Duration::from_secs(1)).await;
            if client.write_all(b"x").await.is_err() {
                return;
            }
        }
        panic!("the connection is open after a minute");
    };
    slow(&mut client).await;
}

#[tokio::test(start_paused = true)]
async fn client_that_does_not_read_is_closed_after_half_a_minute() {
    let mut client = connect().await;
    let start = Instant::now();
    // The replies do not fit into the buffer between server and client.
    while client.write_all(&b"ECHO 0123456789\r\n".repeat(100)).await.is_ok() {}
    let waited = start.elapsed().as_secs();
    assert!((29..=32).contains(&waited), "{waited} s");
}

#[tokio::test(start_paused = true)]
async fn drained_connection_reads_until_its_client_closes() {
    let (mut client, drain) = connect_draining().await;
    ping(&mut client).await;
    drop(drain);
    client.read_to_end(&mut Vec::new()).await.expect("a proper end");
    // A socket that is closed with unread input sends a reset, which discards replies.
    client.write_all(b"PING\r\n").await.expect("the server still reads");
    sleep(Duration::from_secs(2)).await;
    client.write_all(b"PING\r\n").await.expect_err("it waits for a second");
}
