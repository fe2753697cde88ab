use std::time::{Duration, Instant};

use tollgate_testkit::server::{Flavor, Server};

use crate::address::Address;
use crate::failure::Failure;
use crate::fixtures::{LONG, Peer, Step, address_of, connect, free_port, say, serve, text};
use crate::resp::{Command, Reply};
use crate::route::Route;

/// Why an address cannot be connected to.
async fn refusal(address: &Address) -> String {
    match Route::from(address).connect(LONG).await {
        Err(Failure::Unreachable(why)) => why,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("connected to {address}"),
    }
}

fn at(port: u16, login: &str, database: u32) -> Address {
    format!("redis://{login}127.0.0.1:{port}/{database}").parse().unwrap()
}

async fn told_by_peer(says: &str) -> String {
    let peer = Peer::start(vec![vec![say(says)]]).await;
    refusal(&peer.address()).await
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
async fn it_has_a_name_a_database_and_knows_the_server() {
    let server = serve(&[]);
    let info = client_info(&at(server.port(), "", 3)).await;
    assert!(info.contains("name=tollgate") && info.contains("db=3"), "{info}");
    assert_eq!(connect(&address_of(&server)).await.info.unwrap().software, "redis");
}

#[tokio::test]
async fn passwords_let_in_and_wrong_ones_are_told_without_telling_them() {
    let server = serve(&["--requirepass", "open sesame"]);
    connect(&at(server.port(), ":open%20sesame@", 0)).await;
    connect(&at(server.port(), "default:open%20sesame@", 1)).await;
    for login in [":hunter2@", "hunter2@", "hunter2:hunter2@"] {
        let why = refusal(&at(server.port(), login, 0)).await;
        assert!(why.ends_with("refused the password"), "{why}");
        assert!(!why.contains("hunter2"));
    }
    let why = refusal(&address_of(&server)).await;
    assert!(why.ends_with("asks for a password, and its address has none"), "{why}");
}

#[tokio::test]
async fn users_log_in_with_what_their_acl_lets_them() {
    let acl = ["--user", "app", "on", ">pw", "~*", "&*", "+@all", "-info"];
    let server = serve(&acl);
    let app = at(server.port(), "app:pw@", 0);
    assert!(client_info(&app).await.contains("user=app"));
    assert_eq!(connect(&app).await.info, None);
    let why = refusal(&at(server.port(), ":x@", 0)).await;
    assert!(why.ends_with("refused the password: it has none, and asks for none"), "{why}");
}

#[tokio::test]
async fn a_database_must_exist() {
    let server = serve(&[]);
    let why = refusal(&at(server.port(), "", 99)).await;
    assert_eq!(why, format!("Redis at 127.0.0.1:{} has no database 99", server.port()));
}

#[tokio::test]
async fn what_is_not_a_redis_is_told() {
    for says in
        ["HTTP/1.1 400 Bad Request\r\n\r\n", "220 mail ESMTP\r\n", "\0\u{1}\u{2}", "+OK\r\n:1\r\n"]
    {
        let why = told_by_peer(says).await;
        assert!(why.ends_with("does not speak the Redis protocol"), "{why}");
    }
    let why = told_by_peer("").await;
    assert!(why.contains("closed the connection at once") || why.contains("broke off"), "{why}");
}

#[tokio::test]
async fn a_server_that_will_not_have_us_is_quoted_by_what_it_means() {
    for (says, meaning) in [
        ("-ERR max number of clients reached\r\n", "maxclients"),
        ("-DENIED Redis is running in protected mode because\r\n", "protected mode"),
        (
            "+OK\r\n$21\r\nredis_version:5.0.7\r\n\r\n",
            "Redis 5.0.7 is too old: 6.2 or newer is needed",
        ),
        ("+OK\r\n-ERR nonsense\r\n", "refused INFO: ERR"),
    ] {
        let why = told_by_peer(says).await;
        assert!(why.contains(meaning), "{why}");
    }
}

#[tokio::test]
async fn a_server_that_repeats_the_password_is_not_repeated() {
    let echo = "-ERR unknown command 'AUTH', with args beginning with: 'hunter2'\r\n";
    let peer = Peer::start(vec![vec![say(echo)]]).await;
    let address = at(peer.port(), ":hunter2@", 0);
    let why = refusal(&address).await;
    assert!(why.ends_with("refused the password"), "{why}");
}

#[tokio::test]
async fn a_server_may_keep_its_version_to_itself() {
    for says in [
        "+OK\r\n-NOPERM no\r\n",
        "-ERR unknown subcommand\r\n-ERR unknown command 'INFO'\r\n",
        "+OK\r\n$0\r\n\r\n",
    ] {
        let peer = Peer::start(vec![vec![say(says), Step::Hang]]).await;
        assert_eq!(connect(&peer.address()).await.info, None);
    }
}

#[tokio::test]
async fn nobody_there_is_told_at_once_and_silence_in_time() {
    let nobody = refusal(&at(free_port(), "", 0)).await;
    assert!(nobody.contains("cannot be reached: "), "{nobody}");

    let peer = Peer::start(vec![vec![Step::Hang]]).await;
    let begun = Instant::now();
    let silent = Route::from(peer.address()).connect(Duration::from_millis(100)).await.err();
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(
        matches!(silent, Some(Failure::Unreachable(why)) if why.contains("does not answer within 100ms"))
    );
}

#[tokio::test]
async fn a_unix_socket_is_a_server_like_any_other() {
    let nowhere = "/no/such/redis.sock";
    let why = refusal(&format!("unix://{nowhere}").parse().unwrap()).await;
    assert!(why.starts_with(&format!("Redis at {nowhere} cannot be reached: ")), "{why}");

    let builder = Server::builder(Flavor::Redis).unix();
    let server = builder.args(["--user", "app", "on", ">pw", "+@all"]).start();
    let socket = text(server.unix_path());
    assert!(client_info(&format!("unix://{socket}").parse().unwrap()).await.contains("db=0"));
    let info = client_info(&format!("unix://app:pw@{socket}?db=3").parse().unwrap()).await;
    assert!(info.contains("db=3") && info.contains("user=app"), "{info}");
    let why = refusal(&format!("unix://app:no@{socket}").parse().unwrap()).await;
    assert_eq!(why, format!("Redis at {socket} refused the password"));
}
