//! Replies that decide many plans, and arrive together.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::echo;
use crate::fixtures::{Peer, Step, long_timeouts, send};
use crate::link::Link;

/// A reply with so many numbers.
fn array(length: usize) -> String {
    format!("*{length}\r\n{}", ":1\r\n".repeat(length))
}

/// Returns the order of the replies to two commands and of the caller that the first reply wakes.
async fn order_of_events(reply: &str) -> Vec<&'static str> {
    let together = format!("{reply}{reply}");
    let peer = vec![Step::Handshake, Step::Expect(2), send(&together), Step::Hang];
    let peer = Peer::start(vec![peer]).await;
    let link = Link::new(peer.address(), long_timeouts());
    let (events, woken) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
    let record = |event: &'static str| {
        let events = Arc::clone(&events);
        move || events.lock().push(event)
    };
    let (caller, wait) = (record("caller"), Arc::clone(&woken));
    let caller = tokio::spawn(async move {
        wait.notified().await;
        caller();
    });
    let (first, second) = (record("first reply"), record("second reply"));
    let (sender, receiver) = oneshot::channel();
    link.send(
        echo(1),
        Box::new(move |_| {
            first();
            woken.notify_one();
        }),
    );
    link.send(
        echo(2),
        Box::new(move |_| {
            second();
            sender.send(()).unwrap();
        }),
    );
    receiver.await.unwrap();
    caller.await.unwrap();
    let events = events.lock();
    events.clone()
}

/// Otherwise all callers send their next plans at the same time, and Redis waits for them.
#[tokio::test]
async fn callers_run_between_large_replies() {
    let order = order_of_events(&array(200)).await;
    assert_eq!(order, ["first reply", "caller", "second reply"]);
}

#[tokio::test]
async fn small_replies_are_delivered_together() {
    let order = order_of_events(&array(3)).await;
    assert_eq!(order, ["first reply", "second reply", "caller"]);
}
