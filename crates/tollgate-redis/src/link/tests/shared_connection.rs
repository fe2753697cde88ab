//! Many callers, one connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::{bulk, echo};
use tollgate_testkit::server::Server;

use crate::address::Address;
use crate::failure::Failure;
use crate::fixtures::{Secured, address_of, patient, serve};
use crate::link::{Link, Patience};
use crate::resp::{Command, Reply};

/// How many connections a server has, this one's excluded.
async fn clients(server: &Server) -> usize {
    let mut connection = crate::fixtures::connect(&address_of(server)).await;
    connection.write([Command::new("CLIENT").arg("LIST")]).await.unwrap();
    let Reply::Bulk(list) = connection.read(1 << 20).await.unwrap() else { panic!("no list") };
    String::from_utf8(list).unwrap().lines().filter(|line| line.contains("name=tollgate")).count()
        - 1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_many_gets_its_own_answer() {
    let secured = Secured::start();
    for address in [address_of(&secured.server), secured.address()] {
        assert_each_gets_its_own(&secured.server, address).await;
    }
}

async fn assert_each_gets_its_own(server: &Server, address: Address) {
    let before = clients(server).await;
    let link = Link::new(address, patient());
    let mut asks = JoinSet::new();
    for number in 0..1000 {
        let link = link.clone();
        asks.spawn(async move { (number, link.ask(echo(number)).await) });
    }
    while let Some(ask) = asks.join_next().await {
        let (number, reply) = ask.unwrap();
        assert_eq!(reply, bulk(number));
    }
    assert!(clients(server).await <= before + 1);
}

#[tokio::test]
async fn an_error_is_a_refusal_of_that_command_alone() {
    let server = serve(&[]);
    let link = Link::new(address_of(&server), patient());
    let (first, wrong, last) =
        tokio::join!(link.ask(echo(1)), link.ask(Command::new("NONSENSE")), link.ask(echo(2)));
    assert_eq!((first, last), (bulk(1), bulk(2)));
    assert!(matches!(wrong, Err(Failure::Refused(error)) if error.code == "ERR"));
}

#[tokio::test]
async fn large_commands_and_large_replies_pass() {
    let secured = Secured::start();
    for address in [address_of(&secured.server), secured.address()] {
        assert_large_ones_pass(&Link::new(address, patient())).await;
    }
}

async fn assert_large_ones_pass(link: &Link) {
    let large = vec![b'x'; 20_000_000];
    let ask = |length: usize| link.ask(Command::new("ECHO").arg(&large[..length]));
    let within = 1_000_000;
    assert_eq!(ask(within).await, Ok(Reply::Bulk(large[..within].to_vec())));
    assert!(matches!(ask(1 << 20).await, Err(Failure::Lost(why)) if why.contains("1048576 bytes")));
    let command = Command::new("ECHO").arg(&large).reply_up_to(30_000_000);
    assert_eq!(link.ask(command).await, Ok(Reply::Bulk(large.clone())));
}

#[tokio::test]
async fn what_is_sent_on_a_reply_goes_out_at_once_and_without_an_end() {
    let secured = Secured::start();
    for address in [address_of(&secured.server), secured.address()] {
        // Each makes room for the next before that is sent.
        let link = Link::new(address, Patience { in_flight: 1, ..patient() });
        let (done, when_done) = oneshot::channel();
        chain(&link, 2000, done);
        assert_eq!(when_done.await, Ok(Ok(Reply::Bulk(b"0".to_vec()))));
    }
}

fn chain(link: &Link, left: u64, done: oneshot::Sender<Result<Reply, Failure>>) {
    let next = link.clone();
    let then = move |reply| match left {
        0 => drop(done.send(reply)),
        _ => chain(&next, left - 1, done),
    };
    link.send(echo(left), Box::new(then));
}

#[tokio::test]
async fn a_caller_that_goes_away_disturbs_nobody() {
    let server = serve(&[]);
    let link = Link::new(address_of(&server), patient());
    for number in 0..200 {
        let mut given_up = Box::pin(link.ask(echo(number)));
        tokio::select! { biased; _ = &mut given_up => {}, () = tokio::task::yield_now() => {} }
        drop(given_up);
        assert_eq!(link.ask(echo(number + 1000)).await, bulk(number + 1000));
    }
}

#[tokio::test]
async fn beyond_the_bound_nothing_is_queued() {
    let server = serve(&[]);
    let link = Link::new(address_of(&server), Patience { in_flight: 3, ..patient() });
    let (sender, mut replies) = mpsc::unbounded_channel();
    for number in 0..5 {
        let sender = sender.clone();
        link.send(echo(number), Box::new(move |reply| drop(sender.send((number, reply)))));
    }
    for number in [3, 4] {
        assert_eq!(replies.recv().await, Some((number, Err(Failure::Overloaded))));
    }
    for number in [0, 1, 2] {
        assert_eq!(replies.recv().await, Some((number, bulk(number))));
    }
    assert_eq!(link.ask(echo(5)).await, bulk(5));
}

#[tokio::test]
async fn the_last_handle_closes_the_connection_when_all_is_answered() {
    let server = serve(&[]);
    let link = Link::new(address_of(&server), patient());
    assert_eq!(link.ask(echo(1)).await, bulk(1));
    let answered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&answered);
    let then = move |reply: Result<Reply, Failure>| {
        count.fetch_add(usize::from(reply.is_ok()), Ordering::SeqCst);
    };
    link.send(echo(2), Box::new(then));
    let other = link.clone();
    drop(link);
    assert_eq!(other.ask(echo(3)).await, bulk(3));
    drop(other);
    assert_eq!(answered.load(Ordering::SeqCst), 1);
    // Sooner than by the timer, which would wake the driver as well.
    let deadline = tokio::time::Instant::now() + crate::fixtures::LONG / 2;
    while clients(&server).await > 0 {
        assert!(tokio::time::Instant::now() < deadline, "the connection stays open");
    }
}

#[test]
fn runtimes_come_and_go() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let server = serve(&[]);
    let link = Link::new(address_of(&server), patient());
    assert_eq!(first.block_on(link.ask(echo(1))), bulk(1));

    // Queued, but the driver's runtime never runs again: ended, it tells so.
    let (sender, mut receiver) = oneshot::channel();
    first.block_on(async { link.send(echo(2), Box::new(|reply| drop(sender.send(reply)))) });
    drop(first);
    assert!(matches!(receiver.try_recv(), Ok(Err(Failure::Unreachable(_) | Failure::Lost(_)))));

    let (sender, mut receiver) = oneshot::channel();
    link.send(echo(3), Box::new(|reply| drop(sender.send(reply))));
    assert!(
        matches!(receiver.try_recv(), Ok(Err(Failure::Unreachable(why))) if why.contains("runtime"))
    );

    assert_eq!(runtime().block_on(link.ask(echo(4))), bulk(4));
}

#[tokio::test]
async fn a_panic_of_one_who_is_told_is_no_end() {
    let server = serve(&[]);
    let link = Link::new(address_of(&server), patient());
    let (sender, receiver) = oneshot::channel();
    link.send(echo(1), Box::new(|_| panic!("told {}", "wrongly")));
    link.send(echo(2), Box::new(|reply| drop(sender.send(reply))));
    assert!(matches!(receiver.await, Ok(Err(Failure::Lost(_)))));
    assert_eq!(link.ask(echo(3)).await, bulk(3));
}

#[tokio::test]
async fn opening_tells_what_the_server_is() {
    let server = serve(&[]);
    let link = Link::new(address_of(&server), patient());
    let info = link.open().await.unwrap().unwrap();
    assert_eq!(info.software, "redis");
    assert!(info.version >= (6, 2, 0));
    // Again on the same connection.
    assert_eq!(link.open().await, Ok(Some(info)));
    assert_eq!(clients(&server).await, 1);
}
