use std::sync::Arc;

use parking_lot::Mutex;

use super::{Listener, Subscription};
use tollgate_testkit::server::Server;

use crate::fixtures::{LONG, Peer, Step, address_of, connect, eventually, patient, say, serve};
use crate::link::Patience;
use crate::resp::{Command, Reply};

const SUBSCRIBED: &str = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n";
const PONG: &str = "*2\r\n$4\r\npong\r\n$0\r\n\r\n";

/// Writes down what it is told.
#[derive(Default)]
struct Diary(Mutex<Vec<String>>);

impl Diary {
    fn entries(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    fn has(&self, entry: &str, times: usize) -> bool {
        self.0.lock().iter().filter(|it| *it == entry).count() == times
    }
}

impl Listener for Diary {
    fn live(&self) {
        self.0.lock().push("live".to_owned());
    }
    fn message(&self, payload: &[u8]) {
        self.0.lock().push(String::from_utf8(payload.to_vec()).unwrap());
    }
    fn lost(&self) {
        self.0.lock().push("lost".to_owned());
    }
}

fn subscribe(address: crate::Address, patience: Patience) -> (Subscription, Arc<Diary>) {
    let diary = Arc::<Diary>::default();
    let listener = Arc::clone(&diary) as Arc<dyn Listener>;
    (Subscription::start(address, patience, "news".to_owned(), listener), diary)
}

/// Runs a command on a connection of its own.
async fn ask(server: &Server, command: Command) -> Reply {
    let mut connection = connect(&address_of(server)).await;
    connection.write([command]).await.unwrap();
    connection.read(1 << 20).await.unwrap()
}

async fn publish(server: &Server, message: &str) {
    ask(server, Command::new("PUBLISH").arg("news").arg(message)).await;
}

#[tokio::test]
async fn messages_come_in_order_between_live_and_lost() {
    let server = serve(&[]);
    let (subscription, diary) = subscribe(address_of(&server), patient());
    eventually("it is live", || diary.has("live", 1)).await;
    publish(&server, "one").await;
    publish(&server, "two").await;
    eventually("it has both", || diary.has("two", 1)).await;
    drop(subscription);
    eventually("it is lost", || diary.has("lost", 1)).await;
    assert_eq!(diary.entries(), ["live", "one", "two", "lost"]);

    let listeners = Reply::Array(vec![Reply::Bulk(b"news".to_vec()), Reply::Integer(0)]);
    let deadline = tokio::time::Instant::now() + LONG;
    while ask(&server, Command::new("PUBSUB").arg("NUMSUB").arg("news")).await != listeners {
        assert!(tokio::time::Instant::now() < deadline, "the connection stays open");
    }
}

#[tokio::test]
async fn a_lost_connection_is_told_and_made_anew() {
    let server = serve(&[]);
    let (_subscription, diary) = subscribe(address_of(&server), patient());
    eventually("it is live", || diary.has("live", 1)).await;
    ask(&server, Command::new("CLIENT").arg("KILL").arg("TYPE").arg("pubsub")).await;
    eventually("it is live again", || diary.has("live", 2)).await;
    publish(&server, "one").await;
    eventually("it has the message", || diary.has("one", 1)).await;
    assert_eq!(diary.entries(), ["live", "lost", "live", "one"]);
}

#[tokio::test]
async fn a_hung_server_is_lost() {
    let server = serve(&[]);
    let reply = std::time::Duration::from_millis(500);
    let (_subscription, diary) = subscribe(address_of(&server), Patience { reply, ..patient() });
    eventually("it is live", || diary.has("live", 1)).await;
    server.hang();
    eventually("it is lost", || diary.has("lost", 1)).await;
    server.resume();
    eventually("it is live again", || diary.has("live", 2)).await;
}

#[tokio::test]
async fn a_server_that_answers_pings_stays_live() {
    let script = [
        vec![Step::Greet, Step::Expect(1), say(SUBSCRIBED)],
        vec![Step::Expect(1), say(PONG), Step::Expect(1), say(PONG), Step::Hang],
    ];
    let peer = Peer::start(vec![script.concat()]).await;
    let (_subscription, diary) = subscribe(peer.address(), patient());
    eventually("it has been asked twice", || peer.commands().len() == 3).await;
    assert_eq!(peer.commands(), ["SUBSCRIBE news", "PING", "PING"]);
    assert_eq!(diary.entries(), ["live"]);
}

#[tokio::test]
async fn what_is_no_message_ends_the_connection() {
    let refuse = vec![Step::Greet, Step::Expect(1), say("-NOPERM no\r\n"), Step::Hang];
    let garbage = vec![Step::Greet, Step::Expect(1), say(SUBSCRIBED), say("HTTP"), Step::Hang];
    let accept = vec![Step::Greet, Step::Expect(1), say(SUBSCRIBED), Step::Hang];
    let peer = Peer::start(vec![refuse, garbage, accept]).await;
    let (_subscription, diary) = subscribe(peer.address(), patient());
    eventually("it is live twice", || diary.has("live", 2)).await;
    assert_eq!(diary.entries(), ["live", "lost", "live"]);
}

#[test]
fn it_is_lost_with_its_runtime_and_never_live_without_one() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (server, _subscription, diary) = runtime.block_on(async {
        let server = serve(&[]);
        let (subscription, diary) = subscribe(address_of(&server), patient());
        eventually("it is live", || diary.has("live", 1)).await;
        (server, subscription, diary)
    });
    drop(runtime);
    assert_eq!(diary.entries(), ["live", "lost"]);
    let (_subscription, diary) = subscribe(address_of(&server), patient());
    assert!(diary.entries().is_empty());
}
