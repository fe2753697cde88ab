//! TLS to real servers, good and bad.

mod files;
mod stream;

use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::address::Address;
use crate::failure::Failure;
use crate::fixtures::{LONG, Peer, Secured, Step, connect, text};
use crate::resp::{Command, Reply};
use crate::route::Route;

/// Why an address cannot be connected to, in one line.
async fn refusal(address: &Address) -> String {
    match Route::from(address).connect(LONG).await {
        Err(Failure::Unreachable(why)) => {
            assert!(!why.contains('\n'), "{why}");
            why
        }
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("connected to {address}"),
    }
}

fn at(port: u16, rest: &str) -> Address {
    format!("rediss://127.0.0.1:{port}{rest}").parse().unwrap()
}

async fn assert_answers(address: &Address) {
    let mut connection = connect(address).await;
    connection.write([Command::new("PING")]).await.unwrap();
    assert_eq!(connection.read(100).await.unwrap(), Reply::Simple("PONG".to_owned()));
}

#[tokio::test]
async fn a_server_that_the_right_authority_vouches_for_is_spoken_to() {
    assert_answers(&Secured::start().address()).await;
}

#[tokio::test]
async fn a_server_that_nobody_we_trust_vouches_for_is_not_spoken_to() {
    let secured = Secured::start();
    let (port, stranger) = (secured.tls_port(), text(&secured.certificates.other_ca));
    let why = refusal(&at(port, &format!("?ca={stranger}"))).await;
    let expected = format!(
        "Redis at 127.0.0.1:{port} has a certificate that was not issued by a CA in {stranger}"
    );
    assert_eq!(why, expected);
    let why = refusal(&at(port, "")).await;
    assert!(why.contains("not issued by a publicly known CA"), "{why}");
}

#[tokio::test]
async fn a_certificate_must_be_of_our_time_and_of_the_right_name() {
    let expired = Secured::with(|builder, all| builder.tls_as(all, &all.expired));
    let why = refusal(&expired.address()).await;
    assert!(why.ends_with("has a certificate that has expired"), "{why}");

    let other = Secured::with(|builder, all| builder.tls_as(all, &all.other_name));
    let why = refusal(&other.address()).await;
    assert!(why.contains("has a certificate that is not for the name 127.0.0.1"), "{why}");
    let why = refusal(&other.address_with("&server_name=cache.example")).await;
    assert!(why.contains("is not for the name cache.example"), "{why}");
    assert_answers(&other.address_with("&server_name=elsewhere.test")).await;
}

#[tokio::test]
async fn who_must_show_a_certificate_is_told_so() {
    for protocol in ["TLSv1.2", "TLSv1.3"] {
        let options = ["--tls-protocols", protocol];
        let secured = Secured::with(|builder, all| builder.mutual_tls(all).args(options));
        let why = refusal(&secured.address()).await;
        assert!(why.contains("client certificate"), "{protocol}: {why}");

        assert_answers(&secured.address_as(&secured.certificates.client)).await;
        let why = refusal(&secured.address_as(&secured.certificates.stranger)).await;
        assert!(why.contains("refused the client certificate"), "{protocol}: {why}");
    }
}

#[tokio::test]
async fn a_plain_port_is_told_as_one_and_hears_no_word_of_redis() {
    for says in ["-ERR Protocol error\r\n", "HTTP/1.1 400 Bad Request\r\n", ""] {
        let peer = Peer::start(vec![vec![Step::Nibble, Step::Say(says.into())]]).await;
        let why = refusal(&at(peer.port(), "")).await;
        assert!(why.contains("is this its TLS port?"), "{why}");
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("rediss://:hunter2@{}", listener.local_addr().unwrap());
    let asked = tokio::spawn(async move { refusal(&url.parse().unwrap()).await });
    let mut heard = vec![0; 100];
    let (mut socket, _) = listener.accept().await.unwrap();
    socket.read_exact(&mut heard).await.unwrap();
    // A handshake of TLS: what follows is up to its keys.
    assert_eq!(heard[..2], [22, 3]);
    drop(socket);
    assert!(!asked.await.unwrap().contains("hunter2"));
}

#[tokio::test]
async fn a_real_servers_plain_port_is_no_way_in() {
    let secured = Secured::start();
    let address = at(secured.server.port(), &format!("?ca={}", secured.ca()));
    let patience = std::time::Duration::from_millis(500);
    let outcome = Route::from(address).connect(patience).await.map(drop);
    // A server that waits for the end of a line says nothing.
    assert!(
        matches!(&outcome, Err(Failure::Unreachable(why)) if why.contains("TLS")),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_tls_port_is_no_plain_one() {
    let secured = Secured::start();
    let plain = format!("redis://127.0.0.1:{}", secured.tls_port()).parse().unwrap();
    let why = refusal(&plain).await;
    assert!(why.contains("rediss://"), "{why}");
}

#[tokio::test]
async fn whom_we_log_in_as_is_for_the_server_alone() {
    let options = ["--requirepass", "hunter2"];
    let secured = Secured::with(|builder, all| builder.tls(all).args(options));
    let (port, ca) = (secured.tls_port(), secured.ca());
    let with = |login: &str| -> Address {
        format!("rediss://{login}127.0.0.1:{port}/3?ca={ca}").parse().unwrap()
    };
    assert_answers(&with(":hunter2@")).await;
    assert!(refusal(&with(":hunter3@")).await.ends_with("refused the password"));
    let log = secured.server.log();
    assert!(!log.contains("hunter"), "{log}");
}
