use std::time::{Duration, Instant};

use tollgate_testkit::server::{Flavor, Server};

use crate::address::Address;
use crate::connection::Route;
use crate::failure::Failure;
use crate::fixtures::{LONG, Peer, Step, address_of, connect, free_port, send, serve, text};
use crate::resp::{Command, Reply};

/// Returns the error of a connection attempt.
async fn connect_error(address: &Address) -> String {
    match Route::from(address).connect(LONG).await {
        Err(Failure::Unreachable(error) | Failure::Misconfigured(error)) => error,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("connected to {address}"),
    }
}

fn at(port: u16, login: &str, database: u32) -> Address {
    format!("redis://{login}127.0.0.1:{port}/{database}").parse().unwrap()
}

async fn peer_error(response: &str) -> String {
    let peer = Peer::start(vec![vec![send(response)]]).await;
    connect_error(&peer.address()).await
}

async fn client_info(address: &Address) -> String {
    let mut connection = connect(address).await;
    connection.write([Command::new("CLIENT").arg("INFO")]).await.unwrap();
    match connection.read(1 << 20).await.unwrap() {
        Reply::Bulk(info) => String::from_utf8(info).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn handshake_sets_name_and_database_and_reads_the_version() {
    let server = serve(&[]);
    let info = client_info(&at(server.port(), "", 3)).await;
    assert!(info.contains("name=tollgate") && info.contains("db=3"), "{info}");
    assert_eq!(connect(&address_of(&server)).await.info.unwrap().software, "redis");
}

#[tokio::test]
async fn wrong_passwords_are_reported_but_not_shown() {
    let server = serve(&["--requirepass", "open sesame"]);
    connect(&at(server.port(), ":open%20sesame@", 0)).await;
    connect(&at(server.port(), "default:open%20sesame@", 1)).await;
    for login in [":hunter2@", "hunter2@", "hunter2:hunter2@"] {
        let error = connect_error(&at(server.port(), login, 0)).await;
        assert!(error.ends_with("refused the password"), "{error}");
        assert!(!error.contains("hunter2"));
    }
    let error = connect_error(&address_of(&server)).await;
    assert!(error.ends_with("requires a password, and the address has none"), "{error}");
}

#[tokio::test]
async fn acl_users_log_in_with_their_permissions() {
    let acl = ["--user", "app", "on", ">pw", "~*", "&*", "+@all", "-info"];
    let server = serve(&acl);
    let app = at(server.port(), "app:pw@", 0);
    assert!(client_info(&app).await.contains("user=app"));
    assert_eq!(connect(&app).await.info, None);
    let error = connect_error(&at(server.port(), ":x@", 0)).await;
    assert!(error.ends_with("refused the password: it has no password configured"), "{error}");
}

#[tokio::test]
async fn rejects_a_missing_database() {
    let server = serve(&[]);
    let error = connect_error(&at(server.port(), "", 99)).await;
    assert_eq!(error, format!("Redis at 127.0.0.1:{} has no database 99", server.port()));
}

#[tokio::test]
async fn servers_other_than_redis_are_reported() {
    for response in
        ["HTTP/1.1 400 Bad Request\r\n\r\n", "220 mail ESMTP\r\n", "\0\u{1}\u{2}", "+OK\r\n:1\r\n"]
    {
        let error = peer_error(response).await;
        assert!(error.ends_with("does not speak the Redis protocol"), "{error}");
    }
    let error = peer_error("").await;
    assert!(
        error.contains("closed the connection") || error.contains("reset the connection"),
        "{error}"
    );
}

#[tokio::test]
async fn refusals_of_the_server_are_explained() {
    for (response, meaning) in [
        ("-ERR max number of clients reached\r\n", "maxclients"),
        ("-DENIED Redis is running in protected mode because\r\n", "protected mode"),
        ("+OK\r\n$21\r\nredis_version:5.0.7\r\n\r\n", "Redis 5.0.7 is too old; use 6.2 or newer"),
        ("+OK\r\n-ERR nonsense\r\n", "refused INFO: ERR"),
    ] {
        let error = peer_error(response).await;
        assert!(error.contains(meaning), "{error}");
    }
}

#[tokio::test]
async fn password_repeated_by_the_server_is_not_shown() {
    let echo = "-ERR unknown command 'AUTH', with args beginning with: 'hunter2'\r\n";
    let peer = Peer::start(vec![vec![send(echo)]]).await;
    let address = at(peer.port(), ":hunter2@", 0);
    let error = connect_error(&address).await;
    assert!(error.ends_with("refused the password"), "{error}");
}

#[tokio::test]
async fn unknown_server_version_is_accepted() {
    for response in [
        "+OK\r\n-NOPERM no\r\n",
        "-ERR unknown subcommand\r\n-ERR unknown command 'INFO'\r\n",
        "+OK\r\n$0\r\n\r\n",
    ] {
        let peer = Peer::start(vec![vec![send(response), Step::Hang]]).await;
        assert_eq!(connect(&peer.address()).await.info, None);
    }
}

#[tokio::test]
async fn unreachable_and_silent_servers_are_reported() {
    let unreachable = connect_error(&at(free_port(), "", 0)).await;
    assert!(unreachable.contains("cannot be reached: "), "{unreachable}");

    let peer = Peer::start(vec![vec![Step::Hang]]).await;
    let started = Instant::now();
    let silent = Route::from(peer.address()).connect(Duration::from_millis(100)).await.err();
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(
        matches!(silent, Some(Failure::Unreachable(error)) if error.contains("did not reply within 100ms"))
    );
}

#[tokio::test]
async fn connects_over_a_unix_socket() {
    let nowhere = "/no/such/redis.sock";
    let error = connect_error(&format!("unix://{nowhere}").parse().unwrap()).await;
    assert!(error.starts_with(&format!("Redis at {nowhere} cannot be reached: ")), "{error}");

    let builder = Server::builder(Flavor::Redis).unix();
    let server = builder.args(["--user", "app", "on", ">pw", "+@all"]).start();
    let socket = text(server.unix_path());
    assert!(client_info(&format!("unix://{socket}").parse().unwrap()).await.contains("db=0"));
    let info = client_info(&format!("unix://app:pw@{socket}?db=3").parse().unwrap()).await;
    assert!(info.contains("db=3") && info.contains("user=app"), "{info}");
    let error = connect_error(&format!("unix://app:no@{socket}").parse().unwrap()).await;
    assert_eq!(error, format!("Redis at {socket} refused the password"));
}
