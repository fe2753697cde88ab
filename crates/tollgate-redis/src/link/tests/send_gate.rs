//! Commands that are withdrawn before they are sent, and servers that stop replying.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use super::{bulk, echo};
use crate::failure::Failure;
use crate::fixtures::{Peer, Step, long_timeouts, send};
use crate::link::{Link, LinkLimits, SendGate};
use crate::resp::Reply;

/// A caller withdraws a command that waits for the connection.
#[tokio::test]
async fn withdrawn_command_is_not_sent() {
    let go_on = Arc::new(Notify::new());
    let script =
        [vec![Step::Wait(go_on.clone())], vec![Step::Handshake, Step::ReplyToAll("+PONG\r\n")]]
            .concat();
    let peer = Peer::start(vec![script]).await;
    let link = Link::new(peer.address(), long_timeouts());
    let (gates, (sender, mut outcomes)) = ([(); 3].map(|()| gate()), mpsc::unbounded_channel());
    for (number, gate) in (0..).zip(&gates) {
        let sender = sender.clone();
        let on_reply = Box::new(move |outcome| drop(sender.send((number, outcome))));
        link.send_through(echo(number), Some(Arc::clone(gate)), on_reply);
    }
    assert!(gates[1].withdraw());
    go_on.notify_one();
    let pong = || Ok(Reply::Simple("PONG".to_owned()));
    let mut received = Vec::new();
    for _ in 0..3 {
        received.extend(outcomes.recv().await);
    }
    received.sort_by_key(|(number, _)| *number);
    assert_eq!(received, [(0, pong()), (1, Err(Failure::Withdrawn)), (2, pong())]);
    assert_eq!(peer.commands(), ["ECHO 0", "ECHO 2"]);
    assert!(!gates[0].withdraw() && !gates[2].withdraw(), "they were sent");
}

/// A server is silent if a command waits for its reply for the whole timeout. An idle server is not silent, however
/// long it is idle.
#[tokio::test]
async fn silent_server_is_detected() {
    let hung = vec![Step::Handshake, Step::Expect(1), send("$1\r\n1\r\n"), Step::Hang];
    let peer = Peer::start(vec![hung]).await;
    let limits = LinkLimits { reply_timeout: Duration::from_secs(1), ..long_timeouts() };
    let link = Link::new(peer.address(), limits);
    assert!(!link.is_replying(limits.reply_timeout), "there is no connection");
    assert_eq!(link.request(echo(1)).await, bulk(1));
    assert!(link.is_replying(Duration::ZERO), "it has nothing to reply to");
    let (sender, receiver) = oneshot::channel();
    let before = Instant::now();
    link.send(echo(2), Box::new(|outcome| drop(sender.send(outcome))));
    // Its silence begins with the command, not with its last reply.
    assert!(link.inner.queue.is_replying(before, Duration::from_nanos(1)));
    assert_eq!(receiver.await, Ok(Err(Failure::Timeout)));
    assert!(!link.is_replying(limits.reply_timeout));
}

fn gate() -> Arc<SendGate> {
    Arc::new(SendGate::default())
}
