//! HTTPS: server and client certificates, reloads, and bounds on handshakes.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio_rustls::rustls::ALL_VERSIONS;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tollgate_testkit::server::{Certificates, Identity};
use tollgate_testkit::wait::MAX_WAIT;

use crate::client::Client;
use crate::service::{Ended, Scratch, Service, eventually, run, tollgate};
use crate::settings::{refused, start};
use crate::shutdown::check_until_closed;
use crate::tls_client::TlsClient;

fn text(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}

fn pair(identity: &Identity) -> [&str; 4] {
    ["--tls-cert", text(&identity.certificate), "--tls-key", text(&identity.key)]
}

fn serve(certificates: &Certificates, args: &[&str]) -> Service {
    Service::start(&[&pair(&certificates.server), args].concat())
}

fn check(service: &Service, ca: &Path, args: &[&str]) -> Ended {
    run(&[&["check", "k", "--server", &service.url(), "--ca", text(ca)], args].concat())
}

/// Connects with a client that trusts the server's CA.
fn connect(service: &Service, certificates: &Certificates) -> Client {
    let client = TlsClient::trusting(&certificates.ca, ALL_VERSIONS);
    client.connect(service.address()).expect("a trusted certificate").0
}

/// Asserts that the command got no response and printed one line with the reason.
fn assert_no_response(ended: &Ended, words: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (3, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

#[test]
fn both_listeners_require_tls() {
    let certificates = Certificates::new();
    let service = serve(&certificates, &["--admin", "127.0.0.1:0"]);
    assert!(service.url().starts_with("https://127.0.0.1:"), "{}", service.url());
    let ended = check(&service, &certificates.ca, &[]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert_eq!(ended.stdout, "allowed: 99 of 100 left (rule default, limit 60s)\n");
    let client = TlsClient::trusting(&certificates.ca, ALL_VERSIONS);
    let (mut admin, _) = client.connect(service.admin_address()).unwrap();
    assert_eq!(admin.get("/api/status").status, 200);
    for address in [service.address(), service.admin_address()] {
        let mut plain = TcpStream::connect(address).unwrap();
        plain.set_read_timeout(Some(MAX_WAIT)).unwrap();
        // More than one read: unread data must not turn the close into a reset.
        let long = format!("GET /healthz HTTP/1.1\r\nhost: t\r\nx: {}\r\n\r\n", "y".repeat(40_000));
        plain.write_all(long.as_bytes()).unwrap();
        let mut received = Vec::new();
        plain.read_to_end(&mut received).expect("a closed connection");
        let text = String::from_utf8_lossy(&received);
        assert!(text.starts_with("HTTP/1.1 400 "), "{text}");
        assert!(text.ends_with("\r\n\r\nThis port requires HTTPS\n"), "{text}");
    }
}

#[test]
fn http_to_a_server_with_tls_suggests_https() {
    let service = serve(&Certificates::new(), &["--resp", "127.0.0.1:0"]);
    let plain = service.url().replace("https://", "http://");
    let words = format!("the server speaks TLS; use {}", service.url());
    assert_no_response(&run(&["check", "k", "--server", &plain]), &words);
    assert_no_response(&run(&["top", "--once", "--server", &plain]), &words);
    // Other TLS servers, here that of another protocol, answer with an alert.
    let log = service.log();
    let other = log.lines().find_map(|line| line.strip_prefix("listening on resps://")).unwrap();
    let ended = run(&["check", "k", "--server", &format!("http://{other}")]);
    assert_no_response(&ended, &format!("the server speaks TLS; use https://{other}"));
}

#[test]
fn supports_tls_1_2_and_1_3_with_http_1_1_only() {
    let certificates = Certificates::new();
    let service = serve(&certificates, &[]);
    for version in [&TLS12, &TLS13] {
        let client =
            TlsClient::trusting(&certificates.ca, &[version]).offering(&["h2", "http/1.1"]);
        let (mut client, protocol) = client.connect(service.address()).unwrap();
        assert_eq!(protocol.as_deref(), Some("http/1.1"));
        for _ in 0..3 {
            assert_eq!(client.post("/check", r#"{"key":"v"}"#).status, 200, "{version:?}");
        }
        let only_h2 = TlsClient::trusting(&certificates.ca, &[version]).offering(&["h2"]);
        assert!(only_h2.connect(service.address()).is_err(), "{version:?}");
    }
    assert_eq!(
        connect(&service, &certificates).post("/check", r#"{"key":"v"}"#).json()["remaining"],
        93
    );
}

#[test]
fn client_rejects_untrusted_servers() {
    let certificates = Certificates::new();
    let service = serve(&certificates, &[]);
    let other = text(&certificates.other_ca);
    let words = format!("the server's certificate was not issued by a CA in {other}");
    assert_no_response(&check(&service, &certificates.other_ca, &[]), &words);
    let public = run(&["check", "k", "--server", &service.url()]);
    assert_no_response(&public, "was not issued by a public CA; use --ca to trust a private one");
    for (identity, words) in [
        (&certificates.expired, "the server's certificate has expired"),
        (&certificates.other_name, "the server's certificate is not valid for the name 127.0.0.1"),
    ] {
        let service = Service::start(&pair(identity));
        assert_no_response(&check(&service, &certificates.ca, &[]), words);
    }
    assert_eq!(
        connect(&service, &certificates).post("/check", r#"{"key":"k"}"#).json()["remaining"],
        99
    );
}

#[test]
fn warns_of_an_expired_certificate() {
    let certificates = Certificates::new();
    let service = Service::start(&pair(&certificates.expired));
    let log = service.log();
    let words = format!(
        "--tls-cert: {}: the certificate has expired",
        text(&certificates.expired.certificate)
    );
    assert!(log.contains("WARN") && log.contains(&words), "{log}");
    assert!(!serve(&certificates, &[]).log().contains("WARN"));
}

#[test]
fn client_ca_admits_only_its_clients() {
    let certificates = Certificates::new();
    let service = serve(&certificates, &["--tls-client-ca", text(&certificates.ca)]);
    let as_client = |identity: &Identity| {
        let (certificate, key) = (text(&identity.certificate), text(&identity.key));
        check(&service, &certificates.ca, &["--client-cert", certificate, "--client-key", key])
    };
    let words = "the server requires a client certificate; use --client-cert and --client-key";
    assert_no_response(&check(&service, &certificates.ca, &[]), words);
    let rejected = "the server rejected the client certificate (";
    assert_no_response(&as_client(&certificates.stranger), rejected);
    assert_no_response(
        &as_client(&certificates.expired),
        &format!("{rejected}CertificateExpired)"),
    );
    let accepted = as_client(&certificates.client);
    assert_eq!((accepted.code, accepted.stderr.as_str()), (0, ""));
    assert!(accepted.stdout.starts_with("allowed: 99 of 100"), "{}", accepted.stdout);
    let by_environment = tollgate(&["check", "k", "--server", &service.url()])
        .env("TOLLGATE_CA", &certificates.ca)
        .env("TOLLGATE_CLIENT_CERT", &certificates.client.certificate)
        .env("TOLLGATE_CLIENT_KEY", &certificates.client.key)
        .output();
    assert_eq!(Ended::from(by_environment.unwrap()).code, 0);
    // The server checks the client certificate before the end of a TLS 1.2 handshake, and after a TLS 1.3 handshake.
    for version in [&TLS12, &TLS13] {
        let client = TlsClient::trusting(&certificates.ca, &[version]);
        let reply = client
            .connect(service.address())
            .and_then(|(mut client, _)| client.try_post("/check", br#"{"key":"k"}"#));
        assert!(reply.is_err(), "{version:?}: {reply:?}");
    }
}

#[test]
fn client_certificates_allow_a_public_address_without_tokens() {
    let certificates = Certificates::new();
    let open = ["--http", "0.0.0.0:0"];
    let ended = refused(&[&open[..], &pair(&certificates.server)].concat(), &[]);
    assert!(
        ended.stderr.contains("--http: 0.0.0.0:0 is reachable from other machines"),
        "{}",
        ended.stderr
    );
    let client_ca = ["--tls-client-ca", text(&certificates.ca)];
    let service = start(&[&open[..], &pair(&certificates.server), &client_ca].concat(), &[]);
    assert!(service.url().starts_with("https://0.0.0.0:"), "{}", service.url());
}

#[test]
fn environment_and_settings_file_can_name_tls_files() {
    let certificates = Certificates::new();
    let (certificate, key) =
        (text(&certificates.server.certificate), text(&certificates.server.key));
    let here = ["--http", "127.0.0.1:0"];
    let service = start(&here, &[("TOLLGATE_TLS_CERT", certificate), ("TOLLGATE_TLS_KEY", key)]);
    assert_eq!(check(&service, &certificates.ca, &[]).code, 0);
    let scratch = Scratch::new();
    let ca = text(&certificates.ca);
    let settings = format!("tls_cert: {certificate}\ntls_key: {key}\ntls_client_ca: {ca}\n");
    let service = Service::start(&["--config", &scratch.write("settings.yaml", &settings)]);
    assert_no_response(
        &check(&service, &certificates.ca, &[]),
        "the server requires a client certificate",
    );
}

#[test]
fn unusable_tls_files_fail_the_start() {
    let certificates = Certificates::new();
    let scratch = Scratch::new();
    let (certificate, key) =
        (text(&certificates.server.certificate), text(&certificates.server.key));
    let other_key = text(&certificates.client.key);
    let empty = scratch.write("empty.pem", "");
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let garbage = scratch.write("garbage.pem", garbage);
    // A truncated key file: its content must not be shown.
    let pem = fs::read_to_string(key).unwrap();
    let secret: String = pem.lines().nth(1).unwrap().chars().take(20).collect();
    let torn = scratch.write("torn.key", &pem[..pem.len() / 2]);
    let directory = text(scratch.path());
    for (args, words) in [
        (&["--tls-cert", certificate][..], "--tls-cert: needs --tls-key too".to_owned()),
        (&["--tls-key", key], "--tls-key: needs --tls-cert too".to_owned()),
        (&["--tls-client-ca", certificate], "--tls-client-ca: needs --tls-cert and".to_owned()),
        (&["--tls-cert", "/no/such", "--tls-key", key], "--tls-cert: /no/such: No such".to_owned()),
        (
            &["--tls-cert", certificate, "--tls-key", "/no/such"],
            "--tls-key: /no/such: No".to_owned(),
        ),
        (
            &["--tls-cert", certificate, "--tls-key", directory],
            format!("--tls-key: {directory}: is not"),
        ),
        (
            &["--tls-cert", &empty, "--tls-key", key],
            format!("--tls-cert: {empty}: contains no PEM certificate"),
        ),
        (
            &["--tls-cert", key, "--tls-key", key],
            format!("--tls-cert: {key}: contains no PEM certificate"),
        ),
        (
            &["--tls-cert", &garbage, "--tls-key", key],
            format!("--tls-cert: {garbage}: invalid certificate"),
        ),
        (
            &["--tls-cert", certificate, "--tls-key", certificate],
            format!("--tls-key: {certificate}: contains no unencrypted PEM private key"),
        ),
        (
            &["--tls-cert", certificate, "--tls-key", &torn],
            format!("--tls-key: {torn}: contains no unencrypted PEM private key"),
        ),
        (
            &["--tls-cert", certificate, "--tls-key", other_key],
            format!("--tls-key: {other_key}: does not match the certificate in {certificate}"),
        ),
        (
            &["--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", &empty],
            format!("--tls-client-ca: {empty}: contains no PEM certificate"),
        ),
        (
            &["--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", &garbage],
            format!("--tls-client-ca: {garbage}: invalid certificate"),
        ),
    ] {
        let ended = refused(&[&["--http", "127.0.0.1:0"], args].concat(), &[]);
        assert!(
            ended.stderr.starts_with(&format!("tollgate: {words}")),
            "{words}\n{}",
            ended.stderr
        );
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(!ended.stderr.contains(&secret) && !ended.stderr.contains("PRIVATE"));
    }
}

#[test]
fn unusable_client_tls_files_are_usage_errors() {
    let certificates = Certificates::new();
    let (certificate, key) =
        (text(&certificates.client.certificate), text(&certificates.client.key));
    for (args, words) in [
        (&["--ca", "/no/such"][..], "--ca: /no/such: No such file"),
        (&["--ca", key], "contains no PEM certificate"),
        (&["--client-cert", certificate], "--client-cert: needs --client-key too"),
        (&["--client-key", key], "--client-key: needs --client-cert too"),
        (
            &["--client-cert", certificate, "--client-key", text(&certificates.server.key)],
            "does not match the certificate in",
        ),
    ] {
        let ended = run(&[&["check", "k", "--server", "https://127.0.0.1:1"], args].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

#[test]
fn https_to_a_server_without_tls_suggests_http() {
    let service = Service::start(&[]);
    let url = service.url().replace("http://", "https://");
    assert_no_response(&run(&["check", "k", "--server", &url]), "; try http://");
}

/// A service whose certificate files can be replaced.
struct Rotating {
    certificates: Certificates,
    scratch: Scratch,
    service: Service,
}

impl Rotating {
    fn start() -> Self {
        let (certificates, scratch) = (Certificates::new(), Scratch::new());
        let [certificate, key] = Self::replace(&scratch, &certificates.server);
        let service = Service::start(&["--tls-cert", &certificate, "--tls-key", &key]);
        Self { certificates, scratch, service }
    }

    fn replace(scratch: &Scratch, identity: &Identity) -> [String; 2] {
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        [
            scratch.write("tls.pem", &read(&identity.certificate)),
            scratch.write("tls.key", &read(&identity.key)),
        ]
    }

    fn count_in_log(&self, words: &str) -> usize {
        self.service.log().matches(words).count()
    }
}

#[test]
fn replaced_certificates_are_used_without_a_restart() {
    let Rotating { certificates, scratch, service } = Rotating::start();
    let mut early = connect(&service, &certificates);
    assert_eq!(early.get("/healthz").status, 200);
    assert_no_response(&check(&service, &certificates.other_ca, &[]), "was not issued by a CA");
    Rotating::replace(&scratch, &certificates.stranger);
    service.wait_for_log("certificates reloaded");
    assert_eq!(check(&service, &certificates.other_ca, &[]).code, 0);
    assert_no_response(&check(&service, &certificates.ca, &[]), "was not issued by a CA");
    assert_eq!(early.get("/healthz").status, 200, "open connections stay open");
}

#[test]
fn sighup_reloads_certificates_immediately() {
    const DONE: &str = "certificates reloaded";
    let rotating = Rotating::start();
    let Rotating { certificates, scratch, service } = &rotating;
    // The files are unchanged, so a poll would not reload them.
    service.signal("HUP");
    service.wait_for_log(DONE);
    Rotating::replace(scratch, &certificates.stranger);
    service.signal("HUP");
    eventually("a second reload", || rotating.count_in_log(DONE) >= 2);
    assert_eq!(check(service, &certificates.other_ca, &[]).code, 0);
}

#[test]
fn bad_new_files_are_logged_once_and_not_used() {
    const BAD: &str = "certificates not reloaded; the previous ones stay active";
    let rotating = Rotating::start();
    let Rotating { certificates, scratch, service } = &rotating;
    scratch.write("tls.key", &fs::read_to_string(&certificates.stranger.key).unwrap());
    service.wait_for_log("does not match the certificate in");
    assert_eq!(check(service, &certificates.ca, &[]).code, 0);
    scratch.write("tls.pem", "");
    eventually("the second error in the log", || rotating.count_in_log(BAD) == 2);
    assert_eq!(check(service, &certificates.ca, &[]).code, 0);
    let [certificate, _] = Rotating::replace(scratch, &certificates.stranger);
    service.wait_for_log("certificates reloaded");
    assert_eq!(check(service, &certificates.other_ca, &[]).code, 0);
    fs::remove_file(certificate).unwrap();
    eventually("the missing file in the log", || {
        rotating.count_in_log("tls.pem: No such file") == 1
    });
    let start = Instant::now();
    eventually("several polls", || start.elapsed() > Duration::from_secs(7));
    assert_eq!(check(service, &certificates.other_ca, &[]).code, 0);
    assert_eq!(rotating.count_in_log(BAD), 3, "{}", service.log());
    assert!(!service.log().contains("PRIVATE"));
}

/// Connects and sends nothing.
fn connect_silently(service: &Service) -> TcpStream {
    let stream = TcpStream::connect(service.address()).unwrap();
    stream.set_read_timeout(Some(MAX_WAIT)).unwrap();
    stream
}

#[test]
fn missing_handshakes_time_out_and_block_no_client() {
    let certificates = Certificates::new();
    let service = serve(&certificates, &[]);
    let start = Instant::now();
    let mut open: Vec<TcpStream> = (0..20).map(|_| connect_silently(&service)).collect();
    // The start of a record that never ends.
    open[0].write_all(&[22, 3, 1, 2, 0, 1]).unwrap();
    assert_eq!(check(&service, &certificates.ca, &[]).code, 0, "other clients are served");
    for stream in &mut open {
        let mut received = Vec::new();
        let _ = stream.read_to_end(&mut received);
        assert!(received.is_empty(), "{received:?}");
    }
    let elapsed = start.elapsed();
    assert!((Duration::from_secs(9)..Duration::from_secs(40)).contains(&elapsed), "{elapsed:?}");
}

#[test]
fn handshakes_count_as_connections() {
    let certificates = Certificates::new();
    let service = serve(&certificates, &["--max-connections", "1"]);
    let open = connect_silently(&service);
    let mut waiting = connect_silently(&service);
    waiting.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    waiting.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let error = waiting.read(&mut [0; 100]).expect_err("the connection limit is reached");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    drop(open);
    waiting.set_read_timeout(Some(MAX_WAIT)).unwrap();
    assert!(matches!(waiting.read(&mut [0; 100]), Ok(1..)), "a TLS alert");
    drop(waiting);
    assert_eq!(connect(&service, &certificates).get("/healthz").status, 200);
}

#[test]
fn open_handshakes_do_not_delay_shutdown() {
    let certificates = Certificates::new();
    let mut service = serve(&certificates, &["--drain-ms", "0"]);
    let mut client = connect(&service, &certificates);
    assert_eq!(client.get("/healthz").status, 200);
    let _open: Vec<TcpStream> = (0..20).map(|_| connect_silently(&service)).collect();
    let start = Instant::now();
    service.signal("TERM");
    let (status, log) = service.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    assert!(!log.contains("aborting") && !log.contains("panicked"), "{log}");
}

#[test]
fn draining_service_accepts_handshakes_and_requests() {
    let certificates = Certificates::new();
    let mut service = serve(&certificates, &["--drain-ms", "3000"]);
    let mut early = connect(&service, &certificates);
    assert_eq!(early.get("/healthz").status, 200);
    service.signal("TERM");
    service.wait_for_log("draining");
    for client in [&mut early, &mut connect(&service, &certificates)] {
        let reply = client.post("/check", r#"{"key":"k"}"#);
        assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    }
    assert_eq!(service.wait().0.code(), Some(0));
}

#[test]
fn sigterm_under_load_loses_no_request() {
    let certificates = Certificates::new();
    let mut service = serve(&certificates, &["--drain-ms", "1500"]);
    let answered: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
    thread::scope(|threads| {
        for answered in &answered {
            let client = connect(&service, &certificates);
            threads.spawn(|| check_until_closed(client, answered));
        }
        eventually("responses for every client", || {
            answered.iter().all(|count| count.load(Ordering::Relaxed) > 50)
        });
        service.signal("TERM");
    });
    let (status, log) = service.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("aborting") && !log.contains("panicked"), "{log}");
}
