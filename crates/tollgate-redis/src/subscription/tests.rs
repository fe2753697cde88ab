use std::sync::Arc;

use parking_lot::Mutex;

use super::{Listener, Subscription};
use tollgate_testkit::server::Server;

use crate::fixtures::{
    LONG, Peer, Step, address_of, connect, eventually, long_timeouts, send, serve,
};
use crate::link::LinkLimits;
use crate::resp::{Command, Reply};

const SUBSCRIBED: &str = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n";
const PONG: &str = "*2\r\n$4\r\npong\r\n$0\r\n\r\n";

/// Records all events.
#[derive(Default)]
struct EventLog(Mutex<Vec<String>>);

impl EventLog {
    fn entries(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    fn has(&self, entry: &str, times: usize) -> bool {
        self.0.lock().iter().filter(|outcome| *outcome == entry).count() == times
    }
}

impl Listener for EventLog {
    fn subscribed(&self) {
        self.0.lock().push("subscribed".to_owned());
    }
    fn message(&self, payload: &[u8]) {
        self.0.lock().push(String::from_utf8(payload.to_vec()).unwrap());
    }
    fn lost(&self) {
        self.0.lock().push("lost".to_owned());
    }
}

fn subscribe(address: crate::Address, limits: LinkLimits) -> (Subscription, Arc<EventLog>) {
    let log = Arc::<EventLog>::default();
    let listener = Arc::clone(&log) as Arc<dyn Listener>;
    (Subscription::start(address, limits, "news".to_owned(), listener), log)
}

/// Runs a command on a separate connection.
async fn request(server: &Server, command: Command) -> Reply {
    let mut connection = connect(&address_of(server)).await;
    connection.write([command]).await.unwrap();
    connection.read(1 << 20).await.unwrap()
}

async fn publish(server: &Server, message: &str) {
    request(server, Command::new("PUBLISH").arg("news").arg(message)).await;
}

#[tokio::test]
async fn messages_arrive_in_order_between_subscribed_and_lost() {
    let server = serve(&[]);
    let (subscription, log) = subscribe(address_of(&server), long_timeouts());
    eventually("it is subscribed", || log.has("subscribed", 1)).await;
    publish(&server, "one").await;
    publish(&server, "two").await;
    eventually("both messages arrive", || log.has("two", 1)).await;
    drop(subscription);
    eventually("it is lost", || log.has("lost", 1)).await;
    assert_eq!(log.entries(), ["subscribed", "one", "two", "lost"]);

    let listeners = Reply::Array(vec![Reply::Bulk(b"news".to_vec()), Reply::Integer(0)]);
    let deadline = tokio::time::Instant::now() + LONG;
    while request(&server, Command::new("PUBSUB").arg("NUMSUB").arg("news")).await != listeners {
        assert!(tokio::time::Instant::now() < deadline, "the connection stays open");
    }
}

#[tokio::test]
async fn lost_connection_is_reported_and_reconnected() {
    let server = serve(&[]);
    let (_subscription, log) = subscribe(address_of(&server), long_timeouts());
    eventually("it is subscribed", || log.has("subscribed", 1)).await;
    request(&server, Command::new("CLIENT").arg("KILL").arg("TYPE").arg("pubsub")).await;
    eventually("it is subscribed again", || log.has("subscribed", 2)).await;
    publish(&server, "one").await;
    eventually("the message arrives", || log.has("one", 1)).await;
    assert_eq!(log.entries(), ["subscribed", "lost", "subscribed", "one"]);
}

#[tokio::test]
async fn hung_server_is_reported_as_lost() {
    let server = serve(&[]);
    let reply_timeout = std::time::Duration::from_millis(500);
    let (_subscription, log) =
        subscribe(address_of(&server), LinkLimits { reply_timeout, ..long_timeouts() });
    eventually("it is subscribed", || log.has("subscribed", 1)).await;
    server.hang();
    eventually("it is lost", || log.has("lost", 1)).await;
    server.resume();
    eventually("it is subscribed again", || log.has("subscribed", 2)).await;
}

#[tokio::test]
async fn subscription_stays_alive_with_pongs() {
    let script = [
        vec![Step::Handshake, Step::Expect(1), send(SUBSCRIBED)],
        vec![Step::Expect(1), send(PONG), Step::Expect(1), send(PONG), Step::Hang],
    ];
    let peer = Peer::start(vec![script.concat()]).await;
    let (_subscription, log) = subscribe(peer.address(), long_timeouts());
    eventually("two PINGs are sent", || peer.commands().len() == 3).await;
    assert_eq!(peer.commands(), ["SUBSCRIBE news", "PING", "PING"]);
    assert_eq!(log.entries(), ["subscribed"]);
}

#[tokio::test]
async fn unexpected_reply_closes_the_connection() {
    let refuse = vec![Step::Handshake, Step::Expect(1), send("-NOPERM no\r\n"), Step::Hang];
    let garbage =
        vec![Step::Handshake, Step::Expect(1), send(SUBSCRIBED), send("HTTP"), Step::Hang];
    let accept = vec![Step::Handshake, Step::Expect(1), send(SUBSCRIBED), Step::Hang];
    let peer = Peer::start(vec![refuse, garbage, accept]).await;
    let (_subscription, log) = subscribe(peer.address(), long_timeouts());
    eventually("it has subscribed twice", || log.has("subscribed", 2)).await;
    assert_eq!(log.entries(), ["subscribed", "lost", "subscribed"]);
}

#[test]
fn lost_with_its_runtime_and_never_subscribed_without_one() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (server, _subscription, log) = runtime.block_on(async {
        let server = serve(&[]);
        let (subscription, log) = subscribe(address_of(&server), long_timeouts());
        eventually("it is subscribed", || log.has("subscribed", 1)).await;
        (server, subscription, log)
    });
    drop(runtime);
    assert_eq!(log.entries(), ["subscribed", "lost"]);
    let (_subscription, log) = subscribe(address_of(&server), long_timeouts());
    assert!(log.entries().is_empty());
}
