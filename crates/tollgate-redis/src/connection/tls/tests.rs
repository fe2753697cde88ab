//! TLS with real servers, valid and invalid.

mod files;
mod stream;

use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::address::Address;
use crate::connection::Route;
use crate::failure::Failure;
use crate::fixtures::{LONG, Peer, Step, TlsServer, connect, text};
use crate::resp::{Command, Reply};

/// Returns the error of a connection attempt, which must be one line.
async fn connect_error(address: &Address) -> String {
    match Route::from(address).connect(LONG).await {
        Err(Failure::Unreachable(error) | Failure::Misconfigured(error)) => {
            assert!(!error.contains('\n'), "{error}");
            error
        }
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("connected to {address}"),
    }
}

fn at(port: u16, rest: &str) -> Address {
    format!("rediss://127.0.0.1:{port}{rest}").parse().unwrap()
}

async fn assert_replies(address: &Address) {
    let mut connection = connect(address).await;
    connection.write([Command::new("PING")]).await.unwrap();
    assert_eq!(connection.read(100).await.unwrap(), Reply::Simple("PONG".to_owned()));
}

#[tokio::test]
async fn accepts_a_certificate_of_the_trusted_ca() {
    assert_replies(&TlsServer::start().address()).await;
}

#[tokio::test]
async fn rejects_a_certificate_of_an_unknown_ca() {
    let tls_server = TlsServer::start();
    let (port, stranger) = (tls_server.tls_port(), text(&tls_server.certificates.other_ca));
    let error = connect_error(&at(port, &format!("?ca={stranger}"))).await;
    let expected = format!(
        "Redis at 127.0.0.1:{port} has a certificate that was not issued by a CA in {stranger}"
    );
    assert_eq!(error, expected);
    let error = connect_error(&at(port, "")).await;
    assert!(error.contains("not issued by a public CA"), "{error}");
}

#[tokio::test]
async fn rejects_expired_certificates_and_wrong_names() {
    let expired = TlsServer::with(|builder, all| builder.tls_as(all, &all.expired));
    let error = connect_error(&expired.address()).await;
    assert!(error.ends_with("has a certificate that has expired"), "{error}");

    let other = TlsServer::with(|builder, all| builder.tls_as(all, &all.other_name));
    let error = connect_error(&other.address()).await;
    assert!(error.contains("has a certificate that is not for the name 127.0.0.1"), "{error}");
    let error = connect_error(&other.address_with("&server_name=cache.example")).await;
    assert!(error.contains("is not for the name cache.example"), "{error}");
    assert_replies(&other.address_with("&server_name=elsewhere.test")).await;
}

#[tokio::test]
async fn missing_client_certificate_is_reported() {
    for protocol in ["TLSv1.2", "TLSv1.3"] {
        let options = ["--tls-protocols", protocol];
        let tls_server = TlsServer::with(|builder, all| builder.mutual_tls(all).args(options));
        let error = connect_error(&tls_server.address()).await;
        assert!(error.contains("client certificate"), "{protocol}: {error}");

        assert_replies(&tls_server.address_as(&tls_server.certificates.client)).await;
        let error = connect_error(&tls_server.address_as(&tls_server.certificates.stranger)).await;
        assert!(error.contains("refused the client certificate"), "{protocol}: {error}");
    }
}

#[tokio::test]
async fn plain_port_is_reported_and_receives_only_tls() {
    for response in ["-ERR Protocol error\r\n", "HTTP/1.1 400 Bad Request\r\n", ""] {
        let peer = Peer::start(vec![vec![Step::ReadByte, Step::Send(response.into())]]).await;
        let error = connect_error(&at(peer.port(), "")).await;
        assert!(error.contains("is this its TLS port?"), "{error}");
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("rediss://:hunter2@{}", listener.local_addr().unwrap());
    let attempt = tokio::spawn(async move { connect_error(&url.parse().unwrap()).await });
    let mut received = vec![0; 100];
    let (mut socket, _) = listener.accept().await.unwrap();
    socket.read_exact(&mut received).await.unwrap();
    // The record header of a TLS handshake.
    assert_eq!(received[..2], [22, 3]);
    drop(socket);
    assert!(!attempt.await.unwrap().contains("hunter2"));
}

#[tokio::test]
async fn plain_port_of_a_real_server_is_rejected() {
    let tls_server = TlsServer::start();
    let address = at(tls_server.server.port(), &format!("?ca={}", tls_server.ca()));
    let timeout = std::time::Duration::from_millis(500);
    let outcome = Route::from(address).connect(timeout).await.map(drop);
    // The server waits for the end of a line and sends nothing.
    assert!(
        matches!(&outcome, Err(Failure::Unreachable(error)) if error.contains("TLS")),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn tls_port_without_tls_suggests_rediss() {
    let tls_server = TlsServer::start();
    let plain = format!("redis://127.0.0.1:{}", tls_server.tls_port()).parse().unwrap();
    let error = connect_error(&plain).await;
    assert!(error.contains("rediss://"), "{error}");
}

#[tokio::test]
async fn login_is_sent_only_to_the_server() {
    let options = ["--requirepass", "hunter2"];
    let tls_server = TlsServer::with(|builder, all| builder.tls(all).args(options));
    let (port, ca) = (tls_server.tls_port(), tls_server.ca());
    let with = |login: &str| -> Address {
        format!("rediss://{login}127.0.0.1:{port}/3?ca={ca}").parse().unwrap()
    };
    assert_replies(&with(":hunter2@")).await;
    assert!(connect_error(&with(":hunter3@")).await.ends_with("refused the password"));
    let log = tls_server.server.log();
    assert!(!log.contains("hunter"), "{log}");
}
