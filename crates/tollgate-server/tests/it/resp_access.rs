//! RESP: authentication, permissions, TLS, connection limits, time-outs and drain.

use std::net::TcpStream;

use tokio_rustls::rustls::ALL_VERSIONS;
use tollgate_testkit::server::{Certificates, Identity};

use crate::admin_client::{TOKEN as ADMIN, audit};
use crate::resp_client::{RespClient, encode, readable, resp_address, start, start_with};
use crate::service::{Service, eventually, run};
use crate::tls_client::TlsClient;

const CHECK: &str = "a-token-for-checks-0123456789abcdef";
const WRONG: &str = "another-token-of-the-same-kind-0123";
const WRONG_PASSWORD: &str = "-WRONGPASS invalid username-password pair or user is disabled.";
const NO_AUTH: &str = "-NOAUTH Authentication required.";

const TOKENS: [(&str, &str); 2] =
    [("TOLLGATE_CHECK_TOKEN", CHECK), ("TOLLGATE_ADMIN_TOKEN", ADMIN)];

#[test]
fn commands_need_the_check_token() {
    let (service, address) = start_with(&[], &TOKENS);
    let mut client = RespClient::connect(address);
    for command in ["PING", "CL.THROTTLE k 1 1 60", "TOLLGATE.CHECK k", "INFO", "COMMAND"] {
        assert_eq!(client.call(command), NO_AUTH, "{command}");
    }
    let hello = client.call("HELLO 3");
    assert!(hello.starts_with("-NOAUTH HELLO must be called with the client already"), "{hello}");
    let unknown = client.call("NOTHING");
    assert_eq!(unknown, "-ERR unknown command 'NOTHING', with args beginning with: ");
    assert_eq!(client.call("AUTH a b c"), "-ERR syntax error");
    for _ in 0..10 {
        assert_eq!(client.call("CLIENT ID"), NO_AUTH, "however often");
    }
    for _ in 0..10 {
        assert_eq!(client.call(&format!("AUTH {WRONG}")), WRONG_PASSWORD);
    }
    let refused = client.call(&format!("AUTH {WRONG}"));
    assert!(refused.starts_with("-ERR too many failed attempts from your address"), "{refused}");
    assert_eq!(client.call(&format!("AUTH {CHECK}")), "OK", "a valid token is always accepted");
    assert_eq!(client.call("PING"), "PONG");
    assert_eq!(client.call("RESET"), "RESET");
    assert_eq!(client.call("PING"), NO_AUTH, "RESET forgets the token");
    let metrics = service.get("/metrics").body;
    let failures = "tollgate_auth_failures_total{token=\"check\"} 28";
    assert!(metrics.lines().any(|line| line == failures), "{metrics}");
}

#[test]
fn wrong_tokens_change_nothing() {
    let (_service, address) = start_with(&[], &TOKENS);
    let mut client = RespClient::connect(address);
    let logins =
        [("", WRONG), ("", ADMIN), ("default ", WRONG), ("kim ", CHECK), ("admin ", CHECK)];
    for (user, token) in logins {
        assert_eq!(client.call(&format!("AUTH {user}{token}")), WRONG_PASSWORD, "{user}");
    }
    let hello = format!("HELLO 3 AUTH default {WRONG} SETNAME me");
    assert_eq!(client.call(&hello), WRONG_PASSWORD);
    assert_eq!(client.call("PING"), NO_AUTH);
    let hello = client.call(&format!("HELLO 3 AUTH default {CHECK} SETNAME me"));
    assert!(hello.starts_with("{server redis"), "{hello}");
    assert_eq!(client.call("CLIENT GETNAME"), "me");
    assert_eq!(client.call(&format!("AUTH {WRONG}")), WRONG_PASSWORD);
    assert_eq!(client.call("PING"), "PONG", "the client stays authenticated");
}

#[test]
fn no_token_is_needed_if_none_is_set() {
    let (_service, address) = start(&[]);
    let mut client = RespClient::connect(address);
    assert!(
        client
            .call("AUTH x")
            .starts_with("-ERR AUTH <password> called without any password configured")
    );
    assert_eq!(client.call("AUTH default x"), "OK");
    assert_eq!(client.call("AUTH admin x"), WRONG_PASSWORD);
    assert_eq!(
        client.call("TOLLGATE.RESET k"),
        "-NOPERM this command requires the admin token, and none is configured: set TOLLGATE_ADMIN_TOKEN"
    );
}

#[test]
fn reset_needs_the_admin_token_and_is_audited() {
    let (service, address) = start_with(&[], &TOKENS);
    let mut client = RespClient::connect(address);
    assert_eq!(client.call(&format!("AUTH default {CHECK}")), "OK");
    for _ in 0..3 {
        client.call("TOLLGATE.CHECK c1");
    }
    client.call("CL.THROTTLE c1 9 1 3600 4");
    assert!(client.call("TOLLGATE.RESET c1").ends_with("send AUTH admin TOKEN"));
    assert_eq!(client.call(&format!("AUTH admin {ADMIN}")), "OK");
    assert!(client.call("TOLLGATE.PEEK c1").starts_with("[1 100 97 "));
    assert_eq!(client.call("TOLLGATE.RESET c1"), "OK");
    assert!(client.call("TOLLGATE.PEEK c1").starts_with("[1 100 100 "));
    assert_eq!(client.call("CL.THROTTLE c1 9 1 3600 0"), "[0 10 10 -1 0]", "inline limits too");
    assert_eq!(client.call("TOLLGATE.RESET client=a=b tenant=acme"), "OK");
    let entries = audit(&service);
    assert_eq!(
        (&entries[0]["action"], &entries[0]["client"], &entries[0]["tenant"]),
        (&"client.reset".into(), &"a=b".into(), &"acme".into()),
        "{entries:?}"
    );
    assert_eq!(entries[1]["client"], "c1");
    for (arguments, expected) in [
        ("", "wrong number of arguments for 'tollgate.reset' command"),
        ("a b", "syntax error"),
        ("tenant=x", "the client is missing"),
        ("a client=b", "given twice"),
        ("path=/x", "syntax error"),
    ] {
        let reply = client.call(format!("TOLLGATE.RESET {arguments}").trim_end());
        assert!(reply.starts_with("-ERR ") && reply.contains(expected), "{arguments}: {reply}");
    }
    let reply = client.call_with(&[&b"TOLLGATE.RESET"[..], b"\xff"]);
    assert!(reply.contains("must be UTF-8"), "{reply}");
}

#[test]
fn too_many_failures_lock_the_admin_user() {
    let (_service, address) = start_with(&[], &TOKENS);
    let mut client = RespClient::connect(address);
    for _ in 0..10 {
        assert_eq!(client.call(&format!("AUTH admin {WRONG}")), WRONG_PASSWORD);
    }
    let locked = client.call(&format!("AUTH admin {ADMIN}"));
    assert!(locked.starts_with("-ERR too many failed attempts from your address"), "{locked}");
    assert_eq!(client.call(&format!("AUTH {CHECK}")), "OK");
}

#[test]
fn buffers_are_small_before_authentication() {
    let (_service, address) = start_with(&[], &TOKENS);
    for (input, expected) in [
        (b"*11\r\n".to_vec(), "unauthenticated multibulk length"),
        (b"*2\r\n$4\r\nECHO\r\n$1100\r\n".to_vec(), "unauthenticated bulk length"),
        (vec![b'a'; 1100], "too big inline request"),
    ] {
        let mut client = RespClient::connect(address);
        client.send(&input).unwrap();
        let error = readable(&client.reply().unwrap());
        assert_eq!(error, format!("-ERR Protocol error: {expected}"));
        client.expect_end();
    }
    let mut client = RespClient::connect(address);
    let long = "x".repeat(60_000);
    client.send(&[encode(&["AUTH", CHECK]), encode(&["ECHO", &long])].concat()).unwrap();
    assert_eq!(client.reply().unwrap(), b"+OK\r\n");
    assert_eq!(readable(&client.reply().unwrap()), long, "the bounds are wider after AUTH");
    client.send(b"*2\r\n$4\r\nECHO\r\n$65536\r\n").unwrap();
    assert_eq!(readable(&client.reply().unwrap()), "-ERR Protocol error: invalid bulk length");
}

#[test]
fn public_address_needs_a_token() {
    let refused = run(&["serve", "--http", "127.0.0.1:0", "--resp", "0.0.0.0:0"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("--resp: 0.0.0.0:0 is reachable"), "{}", refused.stderr);
    let invalid = run(&["serve", "--resp", "nowhere"]);
    assert_eq!(invalid.code, 2);
    assert!(invalid.stderr.contains("--resp: \"nowhere\" is not HOST:PORT"), "{}", invalid.stderr);
}

#[test]
fn serves_tls_as_the_http_listener_does() {
    let certificates = Certificates::new();
    let Identity { certificate, key, .. } = &certificates.server;
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let args =
        ["--resp", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key, "--drain-ms", "0"];
    let mut service = Service::start_with(&args, &TOKENS);
    let address = resp_address(&service, "resps");
    let tls = TlsClient::trusting(&certificates.ca, ALL_VERSIONS);
    let mut client = tls.connect(address).expect("a trusted certificate").0;
    let pipeline = [encode(&["AUTH", CHECK]), encode(&["CL.THROTTLE", "k", "15", "30", "60"])];
    client.send(&pipeline.concat()).unwrap();
    let lines: Vec<String> = (0..7).map(|_| client.line().unwrap()).collect();
    assert_eq!(lines.join(" "), "+OK\r *5\r :0\r :16\r :15\r :-1\r :2\r");
    service.signal("TERM");
    client.expect_end();
    let (status, log) = service.wait();
    assert!(status.success(), "{log}");
}

#[test]
fn serves_at_most_max_connections() {
    let (_service, address) = start(&["--max-connections", "2"]);
    let mut held: Vec<RespClient> = (0..2).map(|_| RespClient::connect(address)).collect();
    for client in &mut held {
        assert_eq!(client.call("PING"), "PONG");
    }
    let mut waiting = RespClient::connect(address);
    waiting.send(b"PING\r\n").unwrap();
    held.pop();
    assert_eq!(waiting.reply().unwrap(), b"+PONG\r\n", "a connection was closed");
}

#[test]
fn drain_answers_commands_that_have_begun() {
    let (mut service, address) = start(&["--drain-ms", "0"]);
    let [mut idle, mut busy] = [0, 1].map(|_| RespClient::connect(address));
    assert_eq!(idle.call("PING"), "PONG");
    assert_eq!(busy.call("PING"), "PONG");
    busy.send(b"*1\r\n$4\r\nPI").unwrap();
    service.signal("TERM");
    eventually("no new connections", || TcpStream::connect(address).is_err());
    idle.expect_end();
    busy.send(b"NG\r\n").unwrap();
    assert_eq!(busy.rest().unwrap(), b"+PONG\r\n");
    let (status, log) = service.wait();
    assert!(status.success(), "{log}");
}

#[test]
fn drain_time_serves_open_and_new_connections() {
    let (mut service, address) = start(&["--drain-ms", "600000"]);
    let mut open = RespClient::connect(address);
    assert_eq!(open.call("CL.THROTTLE k 15 30 60"), "[0 16 15 -1 2]");
    service.signal("TERM");
    eventually("the node is not ready", || service.get("/readyz").status == 503);
    assert_eq!(open.call("CL.THROTTLE other 15 30 60"), "[0 16 15 -1 2]");
    assert_eq!(RespClient::connect(address).call("PING"), "PONG");
    // A second signal skips the drain time.
    service.signal("TERM");
    open.expect_end();
    let (status, log) = service.wait();
    assert!(status.success(), "{log}");
}
