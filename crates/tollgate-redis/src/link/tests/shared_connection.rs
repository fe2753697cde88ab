//! Many callers on one connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::{bulk, echo};
use tollgate_testkit::server::Server;

use crate::address::Address;
use crate::failure::Failure;
use crate::fixtures::{TlsServer, address_of, long_timeouts, serve};
use crate::link::{Link, LinkLimits};
use crate::resp::{Command, Reply};

/// Returns the number of connections, without this one.
async fn clients(server: &Server) -> usize {
    let mut connection = crate::fixtures::connect(&address_of(server)).await;
    connection.write([Command::new("CLIENT").arg("LIST")]).await.unwrap();
    let Reply::Bulk(list) = connection.read(1 << 20).await.unwrap() else { panic!("no list") };
    String::from_utf8(list).unwrap().lines().filter(|line| line.contains("name=tollgate")).count()
        - 1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_caller_gets_its_own_reply() {
    let tls_server = TlsServer::start();
    for address in [address_of(&tls_server.server), tls_server.address()] {
        assert_each_gets_its_own(&tls_server.server, address).await;
    }
}

async fn assert_each_gets_its_own(server: &Server, address: Address) {
    let before = clients(server).await;
    let link = Link::new(address, long_timeouts());
    let mut tasks = JoinSet::new();
    for number in 0..1000 {
        let link = link.clone();
        tasks.spawn(async move { (number, link.request(echo(number)).await) });
    }
    while let Some(task) = tasks.join_next().await {
        let (number, reply) = task.unwrap();
        assert_eq!(reply, bulk(number));
    }
    assert!(clients(server).await <= before + 1);
}

#[tokio::test]
async fn error_reply_fails_only_its_command() {
    let server = serve(&[]);
    let link = Link::new(address_of(&server), long_timeouts());
    let (first, wrong, last) = tokio::join!(
        link.request(echo(1)),
        link.request(Command::new("NONSENSE")),
        link.request(echo(2))
    );
    assert_eq!((first, last), (bulk(1), bulk(2)));
    assert!(matches!(wrong, Err(Failure::Refused(error)) if error.code == "ERR"));
}

#[tokio::test]
async fn large_commands_and_replies_pass() {
    let tls_server = TlsServer::start();
    for address in [address_of(&tls_server.server), tls_server.address()] {
        assert_large_ones_pass(&Link::new(address, long_timeouts())).await;
    }
}

async fn assert_large_ones_pass(link: &Link) {
    let large = vec![b'x'; 20_000_000];
    let echo_bytes = |length: usize| link.request(Command::new("ECHO").arg(&large[..length]));
    let within = 1_000_000;
    assert_eq!(echo_bytes(within).await, Ok(Reply::Bulk(large[..within].to_vec())));
    assert!(
        matches!(echo_bytes(1 << 20).await, Err(Failure::Lost(error)) if error.contains("1048576 bytes"))
    );
    let command = Command::new("ECHO").arg(&large).reply_up_to(30_000_000);
    assert_eq!(link.request(command).await, Ok(Reply::Bulk(large.clone())));
}

#[tokio::test]
async fn commands_sent_from_callbacks_leave_immediately() {
    let tls_server = TlsServer::start();
    for address in [address_of(&tls_server.server), tls_server.address()] {
        // Each reply decrements the count before the next command is sent.
        let link = Link::new(address, LinkLimits { max_pending: 1, ..long_timeouts() });
        let (done, when_done) = oneshot::channel();
        chain(&link, 2000, done);
        assert_eq!(when_done.await, Ok(Ok(Reply::Bulk(b"0".to_vec()))));
    }
}

fn chain(link: &Link, left: u64, done: oneshot::Sender<Result<Reply, Failure>>) {
    let next = link.clone();
    let on_reply = move |reply| match left {
        0 => drop(done.send(reply)),
        _ => chain(&next, left - 1, done),
    };
    link.send(echo(left), Box::new(on_reply));
}

#[tokio::test]
async fn cancelled_caller_does_not_disturb_others() {
    let server = serve(&[]);
    let link = Link::new(address_of(&server), long_timeouts());
    for number in 0..200 {
        let mut given_up = Box::pin(link.request(echo(number)));
        tokio::select! { biased; _ = &mut given_up => {}, () = tokio::task::yield_now() => {} }
        drop(given_up);
        assert_eq!(link.request(echo(number + 1000)).await, bulk(number + 1000));
    }
}

#[tokio::test]
async fn commands_beyond_the_maximum_are_rejected() {
    let server = serve(&[]);
    let link = Link::new(address_of(&server), LinkLimits { max_pending: 3, ..long_timeouts() });
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
    assert_eq!(link.request(echo(5)).await, bulk(5));
}

#[tokio::test]
async fn last_handle_closes_the_connection_after_replies() {
    let server = serve(&[]);
    let link = Link::new(address_of(&server), long_timeouts());
    assert_eq!(link.request(echo(1)).await, bulk(1));
    let answered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&answered);
    let on_reply = move |reply: Result<Reply, Failure>| {
        count.fetch_add(usize::from(reply.is_ok()), Ordering::SeqCst);
    };
    link.send(echo(2), Box::new(on_reply));
    let other = link.clone();
    drop(link);
    assert_eq!(other.request(echo(3)).await, bulk(3));
    drop(other);
    assert_eq!(answered.load(Ordering::SeqCst), 1);
    // Earlier than the timer, which would also wake the driver.
    let deadline = tokio::time::Instant::now() + crate::fixtures::LONG / 2;
    while clients(&server).await > 0 {
        assert!(tokio::time::Instant::now() < deadline, "the connection stays open");
    }
}

#[test]
fn link_survives_its_runtimes() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let server = serve(&[]);
    let link = Link::new(address_of(&server), long_timeouts());
    assert_eq!(first.block_on(link.request(echo(1))), bulk(1));

    // Queued, but the runtime of the driver shuts down before it runs.
    let (sender, mut receiver) = oneshot::channel();
    first.block_on(async { link.send(echo(2), Box::new(|reply| drop(sender.send(reply)))) });
    drop(first);
    assert!(matches!(receiver.try_recv(), Ok(Err(Failure::Unreachable(_) | Failure::Lost(_)))));

    let (sender, mut receiver) = oneshot::channel();
    link.send(echo(3), Box::new(|reply| drop(sender.send(reply))));
    assert!(
        matches!(receiver.try_recv(), Ok(Err(Failure::Unreachable(error))) if error.contains("runtime"))
    );

    assert_eq!(runtime().block_on(link.request(echo(4))), bulk(4));
}

#[tokio::test]
async fn panic_in_a_callback_does_not_break_the_link() {
    let server = serve(&[]);
    let link = Link::new(address_of(&server), long_timeouts());
    let (sender, receiver) = oneshot::channel();
    link.send(echo(1), Box::new(|_| panic!("{}", "panic of the callback")));
    link.send(echo(2), Box::new(|reply| drop(sender.send(reply))));
    assert!(matches!(receiver.await, Ok(Err(Failure::Lost(_)))));
    assert_eq!(link.request(echo(3)).await, bulk(3));
}

#[tokio::test]
async fn open_returns_the_server_info() {
    let server = serve(&[]);
    let link = Link::new(address_of(&server), long_timeouts());
    let info = link.open().await.unwrap().unwrap();
    assert_eq!(info.software, "redis");
    assert!(info.version >= (6, 2, 0));
    // The second call uses the same connection.
    assert_eq!(link.open().await, Ok(Some(info)));
    assert_eq!(clients(&server).await, 1);
}
