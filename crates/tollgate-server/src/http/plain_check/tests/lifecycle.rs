//! Pipelines, bounds, time-outs and the drain of connections with plain checks, on a paused clock.

use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep, timeout};

use super::*;

const CAPACITY: usize = 256 * 1024;

async fn assert_closed_after(connection: &mut Connection, seconds: RangeInclusive<u64>) -> String {
    let start = Instant::now();
    let rest = connection.rest().await;
    let waited = start.elapsed().as_secs();
    assert!(seconds.contains(&waited), "{waited} s");
    rest
}

#[tokio::test(start_paused = true)]
async fn pipelined_requests_are_answered_in_order_in_one_write() {
    let mut connection = Connection::open(&service().await, CAPACITY);
    connection.send(&pipeline(30)).await;
    for number in 0..30 {
        let response = connection.response().await;
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        assert!(response.contains(&format!(r#""key":"client-{number}""#)), "{response}");
    }
    assert_eq!(connection.writes.count(), 1);
    // A request of its own needs a write of its own.
    connection.send(&check("another")).await;
    connection.response().await;
    assert_eq!(connection.writes.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn long_pipelines_are_answered_in_bounded_writes() {
    let mut connection = Connection::open(&service().await, 4 * CAPACITY);
    let (count, pipeline) = (1000, pipeline(1000));
    connection.send(&pipeline).await;
    let mut length = 0;
    for number in 0..count {
        let response = connection.response().await;
        assert!(response.contains(&format!(r#""key":"client-{number}""#)), "{response}");
        length += response.len();
    }
    let writes = connection.writes.count();
    assert!(writes > length / (80 * 1024), "{writes} writes of {length} bytes");
    assert!(writes < 20, "{writes} writes of {length} bytes");
}

#[tokio::test(start_paused = true)]
async fn client_that_does_not_read_is_not_read_either_and_closed_after_half_a_minute() {
    let mut connection = Connection::open(&service().await, 1024);
    let start = Instant::now();
    let (requests, mut sent) = (pipeline(1000), 0);
    loop {
        match timeout(Duration::from_secs(1), connection.client.write(&requests[sent..])).await {
            Ok(Ok(length)) => sent += length,
            Ok(Err(_)) => break,
            Err(_) => assert!(sent < 32 * 1024, "{sent} bytes are accepted"),
        }
    }
    let waited = start.elapsed().as_secs();
    assert!((29..=32).contains(&waited), "{waited} s");
}

#[tokio::test(start_paused = true)]
async fn idle_connection_is_closed_after_two_minutes() {
    let service = service().await;
    let mut connection = Connection::open(&service, CAPACITY);
    assert_eq!(assert_closed_after(&mut connection, 117..=123).await, "");
    let mut connection = Connection::open(&service, CAPACITY);
    for _ in 0..5 {
        connection.send(&check("a")).await;
        connection.response().await;
        sleep(Duration::from_secs(110)).await;
    }
    connection.send(&check("a")).await;
    connection.response().await;
    assert_eq!(assert_closed_after(&mut connection, 117..=123).await, "");
}

#[tokio::test(start_paused = true)]
async fn incomplete_head_is_closed_after_ten_seconds() {
    let service = service().await;
    for begin in [&b"P"[..], b"POST /check HTTP/1.1\r\nhost: t\r\n"] {
        let mut connection = Connection::open(&service, CAPACITY);
        connection.send(&check("a")).await;
        connection.response().await;
        connection.send(begin).await;
        assert_eq!(assert_closed_after(&mut connection, 7..=10).await, "");
        // It may arrive together with a complete request.
        let mut connection = Connection::open(&service, CAPACITY);
        connection.send(&[&check("a"), begin].concat()).await;
        connection.response().await;
        assert_eq!(assert_closed_after(&mut connection, 7..=10).await, "");
    }
}

#[tokio::test(start_paused = true)]
async fn incomplete_body_is_408_after_half_a_minute() {
    let mut connection = Connection::open(&service().await, CAPACITY);
    let request = check("a");
    connection.send(&request[..request.len() - 1]).await;
    let start = Instant::now();
    let response = connection.response().await;
    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
    let waited = start.elapsed().as_secs();
    assert!((30..=32).contains(&waited), "{waited} s");
}

#[tokio::test(start_paused = true)]
async fn body_may_arrive_after_its_head() {
    let mut connection = Connection::open(&service().await, CAPACITY);
    for wait in [1, 900, 5000, 1] {
        let request = check(&format!("after-{wait}"));
        let (head, body) = request.split_at(request.len() - 5);
        connection.send(head).await;
        sleep(Duration::from_millis(wait)).await;
        connection.send(body).await;
        let response = connection.response().await;
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    }
}

#[tokio::test(start_paused = true)]
async fn drain_closes_idle_connections_and_finishes_requests_that_have_begun() {
    let service = service().await;
    let mut idle = Connection::open(&service, CAPACITY);
    idle.send(&check("a")).await;
    idle.response().await;
    drop(std::mem::replace(&mut idle.drain, watch::Sender::new(())));
    assert_eq!(assert_closed_after(&mut idle, 0..=0).await, "");
    let request = check("b");
    for (begin, rest) in [request.split_at(30), request.split_at(request.len() - 3)] {
        let mut connection = Connection::open(&service, CAPACITY);
        connection.send(begin).await;
        // The server has read the begin when nothing else is to be done.
        sleep(Duration::from_millis(1)).await;
        drop(std::mem::replace(&mut connection.drain, watch::Sender::new(())));
        sleep(Duration::from_millis(1)).await;
        connection.send(rest).await;
        let response = assert_closed_after(&mut connection, 0..=1).await;
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
    }
}
