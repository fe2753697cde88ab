//! Servers that fail, hang or send wrong replies.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep;
use tollgate_testkit::server::Server;

use super::{bulk, echo, open, send_all};
use crate::address::Address;
use crate::failure::Failure;
use crate::fixtures::{
    LONG, Peer, Protocol, Step, TlsServer, address, address_of, eventually, free_port,
    long_timeouts, send, serve,
};
use crate::link::{Link, LinkLimits};
use crate::resp::{Command, Reply};

/// Maximum wait for a server that does not reply, with a margin for a busy machine.
const MAX_WAIT: Duration = Duration::from_secs(2);

fn short_timeouts() -> LinkLimits {
    LinkLimits { reply_timeout: Duration::from_millis(100), ..long_timeouts() }
}

/// A connection with one reply, and then none.
fn reply_once(reply: &str) -> Vec<Step> {
    vec![Step::Handshake, Step::Expect(1), send(reply), Step::Hang]
}

/// A connection with the same reply to every command.
fn reply_to_all(reply: &'static str) -> Vec<Step> {
    vec![Step::Handshake, Step::ReplyToAll(reply)]
}

#[tokio::test]
async fn malformed_reply_closes_only_the_connection() {
    for (response, reason) in [
        ("HTTP/1.1 400 Bad Request\r\n", "not the Redis protocol"),
        ("$1048577\r\n", "more than 1048576 bytes"),
        ("*999999999\r\n", "more than 1048576 bytes"),
        (":1\n", "not the Redis protocol"),
    ] {
        let peer = Peer::start(vec![reply_once(response), reply_once("$1\r\n2\r\n")]).await;
        let link = Link::new(peer.address(), long_timeouts());
        let lost = link.request(echo(1)).await;
        assert!(matches!(&lost, Err(Failure::Lost(error)) if error.contains(reason)), "{lost:?}");
        assert_eq!(link.request(echo(2)).await, bulk(2));
        assert_eq!(peer.commands(), ["ECHO 1", "ECHO 2"]);
    }
}

#[tokio::test]
async fn unsolicited_reply_reaches_no_command() {
    for unsolicited in ["+OK\r\n", "+O"] {
        let wrong = reply_once(&format!("$1\r\n1\r\n{unsolicited}"));
        let peer = Peer::start(vec![wrong, reply_once("$1\r\n2\r\n")]).await;
        let link = Link::new(peer.address(), long_timeouts());
        assert_eq!(link.request(echo(1)).await, bulk(1));
        assert_eq!(link.request(echo(2)).await, bulk(2));
        assert_eq!(peer.connections(), 2);
    }
}

#[tokio::test]
async fn reply_to_a_partly_sent_command_loses_it() {
    let hasty = vec![Step::Handshake, Step::ReadByte, send("+OK\r\n"), Step::Hang];
    let peer = Peer::start(vec![hasty, reply_once("$1\r\n1\r\n")]).await;
    let strict = serve(&["--proto-max-bulk-len", "1mb"]);
    for address in [peer.address(), address_of(&strict)] {
        let link = Link::new(address, long_timeouts());
        let lost = link.request(Command::new("ECHO").arg(vec![b'x'; 20_000_000])).await;
        assert!(matches!(lost, Err(Failure::Lost(_))), "{lost:?}");
        assert_eq!(link.request(echo(1)).await, bulk(1));
    }
}

#[tokio::test]
async fn error_reply_keeps_the_connection() {
    let loading = "-LOADING Redis is loading the dataset in memory\r\n";
    let script =
        vec![Step::Handshake, Step::Expect(1), send(loading), Step::Expect(1), send("$1\r\n2\r\n")];
    let peer = Peer::start(vec![script]).await;
    let link = Link::new(peer.address(), long_timeouts());
    assert!(
        matches!(link.request(echo(1)).await, Err(Failure::Refused(error)) if error.code == "LOADING")
    );
    assert_eq!(link.request(echo(2)).await, bulk(2));
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn cut_replies_never_reach_another_command() {
    for protocol in Protocol::ALL {
        let replies: String = (0..6).map(|number| format!("$1\r\n{number}\r\n")).collect();
        for cut in 0..=replies.len() {
            let script = vec![Step::Handshake, Step::Expect(6), send(&replies[..cut])];
            let peer = Peer::start_with(protocol, vec![script, reply_once("$1\r\n9\r\n")]).await;
            let link = Link::new(peer.address(), long_timeouts());
            let outcomes = send_all(&link, (0..6).map(echo)).await;
            for (number, outcome) in (0..).zip(outcomes) {
                let is_whole = usize::try_from(number).unwrap() < cut / 7;
                assert_eq!(outcome.is_ok(), is_whole, "{number} of {cut}: {outcome:?}");
                assert!(outcome == bulk(number) || matches!(outcome, Err(Failure::Lost(_))));
            }
            assert_eq!(link.request(echo(9)).await, bulk(9));
            let sent: Vec<_> = [0, 1, 2, 3, 4, 5, 9].map(|number| format!("ECHO {number}")).into();
            assert_eq!(peer.commands(), sent, "nothing is sent twice");
        }
    }
}

#[tokio::test]
async fn only_unsent_commands_move_to_the_next_connection() {
    for protocol in Protocol::ALL {
        const SIZE: usize = 1_000_000;
        // The first connection reads one command, and closes when many have filled the socket.
        let first = vec![Step::Handshake, Step::Expect(1)];
        let peer = Peer::start_with(protocol, vec![first, reply_to_all("+OK\r\n")]).await;
        let link = Link::new(peer.address(), long_timeouts());
        let command = |number: u64| Command::new("SET").number(number).arg(vec![b'x'; SIZE]);
        let outcomes = send_all(&link, (0..64).map(command)).await;

        let (lost, succeeded) =
            outcomes.split_at(outcomes.iter().take_while(|outcome| outcome.is_err()).count());
        assert!(!lost.is_empty() && !succeeded.is_empty());
        assert!(lost.iter().all(|outcome| matches!(outcome, Err(Failure::Lost(_)))));
        assert!(succeeded.iter().all(|outcome| *outcome == Ok(Reply::Simple("OK".to_owned()))));
        let recorded: Vec<u64> = peer
            .commands()
            .iter()
            .map(|outcome| outcome.split(' ').nth(1).unwrap().parse().unwrap())
            .collect();
        let first_succeeded = u64::try_from(lost.len()).unwrap();
        assert_eq!(recorded, [0].into_iter().chain(first_succeeded..64).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn connection_closed_while_idle_loses_no_command() {
    for protocol in Protocol::ALL {
        let closing = reply_once("$1\r\n1\r\n")[..3].to_vec();
        let scripts = vec![closing, reply_once("$1\r\n2\r\n")];
        let peer = Peer::start_with(protocol, scripts).await;
        let link = Link::new(peer.address(), long_timeouts());
        assert_eq!(link.request(echo(1)).await, bulk(1));
        eventually("the connection is closed", || peer.closed() == 1).await;
        // Lets the runtime poll its sockets.
        tokio::task::yield_now().await;
        assert_eq!(link.request(echo(2)).await, bulk(2));
        assert_eq!((peer.connections(), peer.commands().len()), (2, 2));
    }
}

#[tokio::test]
async fn commands_without_reply_time_out() {
    for protocol in Protocol::ALL {
        let peer = Peer::start_with(
            protocol,
            vec![vec![Step::Handshake, Step::Hang], reply_to_all("+PONG\r\n")],
        )
        .await;
        let link = Link::new(peer.address(), short_timeouts());
        open(&link).await;
        let started = Instant::now();
        let outcomes = send_all(&link, (0..5).map(echo)).await;
        assert!(started.elapsed() < MAX_WAIT);
        assert!(outcomes.iter().all(|outcome| *outcome == Err(Failure::Timeout)), "{outcomes:?}");
        // The next command uses a new connection; none of the others is resent.
        eventually_replies(&link).await;
        assert!(peer.commands().iter().all(|outcome| outcome == "PING"), "{:?}", peer.commands());
    }
}

#[tokio::test]
async fn expired_commands_are_not_sent() {
    let peer = Peer::start(vec![reply_to_all("+PONG\r\n")]).await;
    let link = Link::new(peer.address(), short_timeouts());
    eventually_replies(&link).await;
    // The driver runs on this thread, which is busy after the first command is queued.
    let commands = (0..2).map(|number| {
        let started = Instant::now();
        while number == 1 && started.elapsed() < short_timeouts().reply_timeout * 2 {
            std::hint::spin_loop();
        }
        echo(number)
    });
    let outcomes = send_all(&link, commands).await;
    let late = &outcomes[0];
    // The server replies, and this process did not send the command in time.
    assert_eq!(*late, Err(Failure::Overloaded));
    assert!(!peer.commands().contains(&"ECHO 0".to_owned()), "{:?}", peer.commands());
}

#[tokio::test]
async fn slow_handshake_continues_in_the_background() {
    let go_on = std::sync::Arc::new(tokio::sync::Notify::new());
    let script = [vec![Step::Wait(go_on.clone())], reply_to_all("+PONG\r\n")].concat();
    let peer = Peer::start(vec![script]).await;
    let link = Link::new(peer.address(), short_timeouts());
    let started = Instant::now();
    let outcomes = send_all(&link, (0..3).map(echo)).await;
    assert!(started.elapsed() < MAX_WAIT);
    assert!(
        outcomes.iter().all(|outcome| matches!(outcome, Err(Failure::Unreachable(_)))),
        "{outcomes:?}"
    );
    go_on.notify_one();
    open(&link).await;
    // The same attempt succeeds, and the expired commands are not sent.
    eventually_replies(&link).await;
    assert_eq!(peer.connections(), 1);
    assert!(peer.commands().iter().all(|outcome| outcome == "PING"), "{:?}", peer.commands());
}

#[tokio::test]
async fn failed_connects_are_rate_limited() {
    let peer = Peer::start(vec![vec![]]).await;
    let link = Link::new(peer.address(), long_timeouts());
    let started = Instant::now();
    for number in 0..500 {
        assert!(matches!(link.request(echo(number)).await, Err(Failure::Unreachable(_))));
    }
    let most = 1 + started.elapsed().as_millis() / 100;
    assert!(u128::try_from(peer.connections()).unwrap() <= most);
}

#[tokio::test]
async fn resend_from_the_callback_fails_again() {
    let link = Link::new(address(free_port()), long_timeouts());
    let (sender, receiver) = tokio::sync::oneshot::channel();
    resend(&link, 100, sender);
    assert!(matches!(receiver.await, Ok(Err(Failure::Unreachable(_)))));
}

fn resend(link: &Link, left: u64, done: tokio::sync::oneshot::Sender<Result<Reply, Failure>>) {
    let again = link.clone();
    let on_reply = move |reply| match left {
        0 => drop(done.send(reply)),
        _ => resend(&again, left - 1, done),
    };
    link.send(echo(left), Box::new(on_reply));
}

#[tokio::test]
async fn open_times_out_and_retries_immediately() {
    let pong = reply_once("+PONG\r\n");
    let peer = Peer::start(vec![vec![Step::Hang], pong]).await;
    let link = Link::new(
        peer.address(),
        LinkLimits { connect_timeout: Duration::from_millis(300), ..long_timeouts() },
    );
    let started = Instant::now();
    assert!(matches!(link.open().await, Err(Failure::Unreachable(_))));
    assert!(started.elapsed() < MAX_WAIT);
    assert!(link.open().await.is_ok());
    assert_eq!(peer.connections(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hung_server_times_out_callers_and_runs_nothing_twice() {
    let tls_server = TlsServer::start();
    for address in [address_of(&tls_server.server), tls_server.address()] {
        assert_hang_is_bounded(&tls_server.server, address).await;
        tls_server.server.raw().call(&["DEL", "runs"]);
    }
}

async fn assert_hang_is_bounded(server: &Server, address: Address) {
    let link = Link::new(address.clone(), short_timeouts());
    eventually_replies(&link).await;
    server.hang();
    let mut sent = 0;
    for _ in 0..3 {
        let mut tasks = JoinSet::new();
        for _ in 0..20 {
            let link = link.clone();
            sent += 1;
            tasks.spawn(async move {
                let started = Instant::now();
                let outcome = link.request(Command::new("INCR").arg("runs")).await;
                (outcome, started.elapsed())
            });
        }
        for (outcome, elapsed) in tasks.join_all().await {
            assert!(matches!(
                outcome,
                Err(Failure::Timeout | Failure::Lost(_) | Failure::Unreachable(_))
            ));
            assert!(elapsed < MAX_WAIT, "{elapsed:?}");
        }
    }
    server.resume();
    eventually_replies(&link).await;
    let link = Link::new(address, long_timeouts());
    let runs = match link.request(Command::new("GET").arg("runs")).await {
        Ok(Reply::Bulk(digits)) => String::from_utf8(digits).unwrap().parse().unwrap(),
        _ => 0,
    };
    assert!(runs <= sent, "{runs} runs of {sent}");
}

#[tokio::test]
async fn restarted_server_is_found_again() {
    let server = serve(&[]);
    let link = Link::new(address_of(&server), long_timeouts());
    assert_eq!(link.request(echo(1)).await, bulk(1));
    server.kill();
    let failure = link.request(echo(2)).await;
    assert!(matches!(failure, Err(Failure::Lost(_) | Failure::Unreachable(_))), "{failure:?}");
    server.restart();
    eventually_replies(&link).await;
}

async fn eventually_replies(link: &Link) {
    let deadline = Instant::now() + LONG;
    while link.request(Command::new("PING")).await.is_err() {
        assert!(Instant::now() < deadline, "the server is not found again");
        sleep(Duration::from_millis(10)).await;
    }
}
