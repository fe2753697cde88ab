//! Servers that fail, hang and lie.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep;
use tollgate_testkit::server::Server;

use super::{bulk, connected, echo, send_all};
use crate::address::Address;
use crate::failure::Failure;
use crate::fixtures::{
    LONG, Over, Peer, Secured, Step, address, address_of, eventually, free_port, patient, say,
    serve,
};
use crate::link::{Link, Patience};
use crate::resp::{Command, Reply};

/// What a caller waits at most for a server that does not answer, with much to spare for a busy machine.
const SOON: Duration = Duration::from_secs(2);

fn impatient() -> Patience {
    Patience { reply: Duration::from_millis(100), ..patient() }
}

/// A connection on which one command is answered, and then nothing.
fn answer_one(reply: &str) -> Vec<Step> {
    vec![Step::Greet, Step::Expect(1), say(reply), Step::Hang]
}

/// A connection on which every command is answered alike.
fn answer_all(reply: &'static str) -> Vec<Step> {
    vec![Step::Greet, Step::AnswerAll(reply)]
}

#[tokio::test]
async fn what_makes_no_sense_ends_the_connection_and_not_the_link() {
    for (says, reason) in [
        ("HTTP/1.1 400 Bad Request\r\n", "not the Redis protocol"),
        ("$1048577\r\n", "more than 1048576 bytes"),
        ("*999999999\r\n", "more than 1048576 bytes"),
        (":1\n", "not the Redis protocol"),
    ] {
        let peer = Peer::start(vec![answer_one(says), answer_one("$1\r\n2\r\n")]).await;
        let link = Link::new(peer.address(), patient());
        let lost = link.ask(echo(1)).await;
        assert!(matches!(&lost, Err(Failure::Lost(why)) if why.contains(reason)), "{lost:?}");
        assert_eq!(link.ask(echo(2)).await, bulk(2));
        assert_eq!(peer.commands(), ["ECHO 1", "ECHO 2"]);
    }
}

#[tokio::test]
async fn an_answer_to_nothing_is_given_to_nobody() {
    for unasked in ["+OK\r\n", "+O"] {
        let lying = answer_one(&format!("$1\r\n1\r\n{unasked}"));
        let peer = Peer::start(vec![lying, answer_one("$1\r\n2\r\n")]).await;
        let link = Link::new(peer.address(), patient());
        assert_eq!(link.ask(echo(1)).await, bulk(1));
        assert_eq!(link.ask(echo(2)).await, bulk(2));
        assert_eq!(peer.connections(), 2);
    }
}

#[tokio::test]
async fn a_command_answered_before_it_has_left_whole_is_lost() {
    let hasty = vec![Step::Greet, Step::Nibble, say("+OK\r\n"), Step::Hang];
    let peer = Peer::start(vec![hasty, answer_one("$1\r\n1\r\n")]).await;
    let strict = serve(&["--proto-max-bulk-len", "1mb"]);
    for address in [peer.address(), address_of(&strict)] {
        let link = Link::new(address, patient());
        let lost = link.ask(Command::new("ECHO").arg(vec![b'x'; 20_000_000])).await;
        assert!(matches!(lost, Err(Failure::Lost(_))), "{lost:?}");
        assert_eq!(link.ask(echo(1)).await, bulk(1));
    }
}

#[tokio::test]
async fn a_refusal_keeps_the_connection() {
    let loading = "-LOADING Redis is loading the dataset in memory\r\n";
    let script =
        vec![Step::Greet, Step::Expect(1), say(loading), Step::Expect(1), say("$1\r\n2\r\n")];
    let peer = Peer::start(vec![script]).await;
    let link = Link::new(peer.address(), patient());
    assert!(
        matches!(link.ask(echo(1)).await, Err(Failure::Refused(error)) if error.code == "LOADING")
    );
    assert_eq!(link.ask(echo(2)).await, bulk(2));
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn wherever_a_stream_of_replies_is_cut_nobody_gets_anothers() {
    for over in Over::ALL {
        let replies: String = (0..6).map(|number| format!("$1\r\n{number}\r\n")).collect();
        for cut in 0..=replies.len() {
            let script = vec![Step::Greet, Step::Expect(6), say(&replies[..cut])];
            let peer = Peer::start_over(over, vec![script, answer_one("$1\r\n9\r\n")]).await;
            let link = Link::new(peer.address(), patient());
            let outcomes = send_all(&link, (0..6).map(echo)).await;
            for (number, outcome) in (0..).zip(outcomes) {
                let is_whole = usize::try_from(number).unwrap() < cut / 7;
                assert_eq!(outcome.is_ok(), is_whole, "{number} of {cut}: {outcome:?}");
                assert!(outcome == bulk(number) || matches!(outcome, Err(Failure::Lost(_))));
            }
            assert_eq!(link.ask(echo(9)).await, bulk(9));
            let sent: Vec<_> = [0, 1, 2, 3, 4, 5, 9].map(|number| format!("ECHO {number}")).into();
            assert_eq!(peer.commands(), sent, "nothing is sent twice");
        }
    }
}

#[tokio::test]
async fn what_has_not_begun_to_leave_leaves_on_the_next_connection_and_nothing_else_does() {
    for over in Over::ALL {
        const SIZE: usize = 1_000_000;
        // The first takes one command, and closes on many that have filled the socket.
        let first = vec![Step::Greet, Step::Expect(1)];
        let peer = Peer::start_over(over, vec![first, answer_all("+OK\r\n")]).await;
        let link = Link::new(peer.address(), patient());
        let command = |number: u64| Command::new("SET").number(number).arg(vec![b'x'; SIZE]);
        let outcomes = send_all(&link, (0..64).map(command)).await;

        let (lost, kept) = outcomes.split_at(outcomes.iter().take_while(|it| it.is_err()).count());
        assert!(!lost.is_empty() && !kept.is_empty());
        assert!(lost.iter().all(|it| matches!(it, Err(Failure::Lost(_)))));
        assert!(kept.iter().all(|it| *it == Ok(Reply::Simple("OK".to_owned()))));
        let seen: Vec<u64> = peer
            .commands()
            .iter()
            .map(|it| it.split(' ').nth(1).unwrap().parse().unwrap())
            .collect();
        let first_kept = u64::try_from(lost.len()).unwrap();
        assert_eq!(seen, [0].into_iter().chain(first_kept..64).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_connection_closed_while_idle_costs_nobody_anything() {
    for over in Over::ALL {
        let closing = answer_one("$1\r\n1\r\n")[..3].to_vec();
        let scripts = vec![closing, answer_one("$1\r\n2\r\n")];
        let peer = Peer::start_over(over, scripts).await;
        let link = Link::new(peer.address(), patient());
        assert_eq!(link.ask(echo(1)).await, bulk(1));
        eventually("it is closed", || peer.ended() == 1).await;
        // Lets the runtime look at its sockets once more.
        tokio::task::yield_now().await;
        assert_eq!(link.ask(echo(2)).await, bulk(2));
        assert_eq!((peer.connections(), peer.commands().len()), (2, 2));
    }
}

#[tokio::test]
async fn without_an_answer_callers_wait_no_longer_than_they_said() {
    for over in Over::ALL {
        let peer =
            Peer::start_over(over, vec![vec![Step::Greet, Step::Hang], answer_all("+PONG\r\n")])
                .await;
        let link = Link::new(peer.address(), impatient());
        connected(&link).await;
        let begun = Instant::now();
        let outcomes = send_all(&link, (0..5).map(echo)).await;
        assert!(begun.elapsed() < SOON);
        assert!(outcomes.iter().all(|it| *it == Err(Failure::Timeout)), "{outcomes:?}");
        // The next comes on a connection of its own, on which none of these is sent again.
        eventually_answered(&link).await;
        assert!(peer.commands().iter().all(|it| it == "PING"), "{:?}", peer.commands());
    }
}

#[tokio::test]
async fn what_is_late_before_it_is_sent_is_not_sent() {
    let peer = Peer::start(vec![answer_all("+PONG\r\n")]).await;
    let link = Link::new(peer.address(), impatient());
    eventually_answered(&link).await;
    // The thread is the driver's as well: kept from it after the first is queued.
    let commands = (0..2).map(|number| {
        let begun = Instant::now();
        while number == 1 && begun.elapsed() < impatient().reply * 2 {
            std::hint::spin_loop();
        }
        echo(number)
    });
    let outcomes = send_all(&link, commands).await;
    let late = &outcomes[0];
    assert!(matches!(late, Err(Failure::Unreachable(why)) if why.contains("too busy")), "{late:?}");
    assert!(!peer.commands().contains(&"ECHO 0".to_owned()), "{:?}", peer.commands());
}

#[tokio::test]
async fn a_slow_handshake_is_waited_for_in_the_background() {
    let go_on = std::sync::Arc::new(tokio::sync::Notify::new());
    let script = [vec![Step::Wait(go_on.clone())], answer_all("+PONG\r\n")].concat();
    let peer = Peer::start(vec![script]).await;
    let link = Link::new(peer.address(), impatient());
    let begun = Instant::now();
    let outcomes = send_all(&link, (0..3).map(echo)).await;
    assert!(begun.elapsed() < SOON);
    assert!(outcomes.iter().all(|it| matches!(it, Err(Failure::Unreachable(_)))), "{outcomes:?}");
    go_on.notify_one();
    connected(&link).await;
    // The same attempt, and those who gave up are not sent after all.
    eventually_answered(&link).await;
    assert_eq!(peer.connections(), 1);
    assert!(peer.commands().iter().all(|it| it == "PING"), "{:?}", peer.commands());
}

#[tokio::test]
async fn nobody_there_is_not_asked_again_and_again() {
    let peer = Peer::start(vec![vec![]]).await;
    let link = Link::new(peer.address(), patient());
    let begun = Instant::now();
    for number in 0..500 {
        assert!(matches!(link.ask(echo(number)).await, Err(Failure::Unreachable(_))));
    }
    let most = 1 + begun.elapsed().as_millis() / 100;
    assert!(u128::try_from(peer.connections()).unwrap() <= most);
}

#[tokio::test]
async fn who_sends_again_on_failure_is_told_again() {
    let link = Link::new(address(free_port()), patient());
    let (sender, receiver) = tokio::sync::oneshot::channel();
    insist(&link, 100, sender);
    assert!(matches!(receiver.await, Ok(Err(Failure::Unreachable(_)))));
}

fn insist(link: &Link, left: u64, done: tokio::sync::oneshot::Sender<Result<Reply, Failure>>) {
    let again = link.clone();
    let then = move |reply| match left {
        0 => drop(done.send(reply)),
        _ => insist(&again, left - 1, done),
    };
    link.send(echo(left), Box::new(then));
}

#[tokio::test]
async fn opening_is_bounded_and_tries_at_once_again() {
    let pong = answer_one("+PONG\r\n");
    let peer = Peer::start(vec![vec![Step::Hang], pong]).await;
    let link =
        Link::new(peer.address(), Patience { connect: Duration::from_millis(300), ..patient() });
    let begun = Instant::now();
    assert!(matches!(link.open().await, Err(Failure::Unreachable(_))));
    assert!(begun.elapsed() < SOON);
    assert!(link.open().await.is_ok());
    assert_eq!(peer.connections(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hung_server_costs_each_caller_its_patience_and_runs_nothing_twice() {
    let secured = Secured::start();
    for address in [address_of(&secured.server), secured.address()] {
        assert_hang_is_bounded(&secured.server, address).await;
        secured.server.raw().call(&["DEL", "runs"]);
    }
}

async fn assert_hang_is_bounded(server: &Server, address: Address) {
    let link = Link::new(address.clone(), impatient());
    eventually_answered(&link).await;
    server.hang();
    let mut asked = 0;
    for _ in 0..3 {
        let mut asks = JoinSet::new();
        for _ in 0..20 {
            let link = link.clone();
            asked += 1;
            asks.spawn(async move {
                let begun = Instant::now();
                let outcome = link.ask(Command::new("INCR").arg("runs")).await;
                (outcome, begun.elapsed())
            });
        }
        for (outcome, took) in asks.join_all().await {
            assert!(matches!(
                outcome,
                Err(Failure::Timeout | Failure::Lost(_) | Failure::Unreachable(_))
            ));
            assert!(took < SOON, "{took:?}");
        }
    }
    server.resume();
    eventually_answered(&link).await;
    let patient = Link::new(address, patient());
    let runs = match patient.ask(Command::new("GET").arg("runs")).await {
        Ok(Reply::Bulk(digits)) => String::from_utf8(digits).unwrap().parse().unwrap(),
        _ => 0,
    };
    assert!(runs <= asked, "{runs} runs of {asked}");
}

#[tokio::test]
async fn a_server_that_dies_and_returns_is_found_again() {
    let server = serve(&[]);
    let link = Link::new(address_of(&server), patient());
    assert_eq!(link.ask(echo(1)).await, bulk(1));
    server.kill();
    let failure = link.ask(echo(2)).await;
    assert!(matches!(failure, Err(Failure::Lost(_) | Failure::Unreachable(_))), "{failure:?}");
    server.restart();
    eventually_answered(&link).await;
}

async fn eventually_answered(link: &Link) {
    let deadline = Instant::now() + LONG;
    while link.ask(Command::new("PING")).await.is_err() {
        assert!(Instant::now() < deadline, "the server is not found again");
        sleep(Duration::from_millis(10)).await;
    }
}
