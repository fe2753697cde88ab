//! HTTPS: who is believed, who is let in, and what a handshake may cost.

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
use crate::shutdown::ask_until_told;
use crate::tls_client::Speaker;

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of ours is text")
}

fn pair(identity: &Identity) -> [&str; 4] {
    ["--tls-cert", text(&identity.certificate), "--tls-key", text(&identity.key)]
}

fn serving(all: &Certificates, args: &[&str]) -> Service {
    Service::start(&[&pair(&all.server), args].concat())
}

fn check(service: &Service, ca: &Path, args: &[&str]) -> Ended {
    run(&[&["check", "k", "--server", &service.url(), "--ca", text(ca)], args].concat())
}

/// A connection of one who trusts the right authority.
fn connected(service: &Service, all: &Certificates) -> Client {
    Speaker::trusting(&all.ca, ALL_VERSIONS).connect(service.address()).expect("it is believed").0
}

/// Nothing was answered, and why.
fn unanswered(ended: &Ended, words: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (3, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

#[test]
fn both_listeners_answer_over_tls_only() {
    let all = Certificates::new();
    let service = serving(&all, &["--admin", "127.0.0.1:0"]);
    assert!(service.url().starts_with("https://127.0.0.1:"), "{}", service.url());
    let ended = check(&service, &all.ca, &[]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert_eq!(ended.stdout, "allowed: 99 of 100 left (rule default, limit 60s)\n");
    let speaker = Speaker::trusting(&all.ca, ALL_VERSIONS);
    let (mut operator, _) = speaker.connect(service.admin_address()).unwrap();
    assert_eq!(operator.get("/api/status").status, 200);
    for address in [service.address(), service.admin_address()] {
        let mut plain = TcpStream::connect(address).unwrap();
        plain.set_read_timeout(Some(MAX_WAIT)).unwrap();
        // More than is read at once: what is left unread must not make a reset of the goodbye.
        let long = format!("GET /healthz HTTP/1.1\r\nhost: t\r\nx: {}\r\n\r\n", "y".repeat(40_000));
        plain.write_all(long.as_bytes()).unwrap();
        let mut told = Vec::new();
        plain.read_to_end(&mut told).expect("it is closed");
        assert!(!told.windows(4).any(|four| four == b"HTTP"), "{}", String::from_utf8_lossy(&told));
    }
}

#[test]
fn tls_is_1_2_or_1_3_with_http_1_1_within() {
    let all = Certificates::new();
    let service = serving(&all, &[]);
    for version in [&TLS12, &TLS13] {
        let speaker = Speaker::trusting(&all.ca, &[version]).offering(&["h2", "http/1.1"]);
        let (mut client, protocol) = speaker.connect(service.address()).unwrap();
        assert_eq!(protocol.as_deref(), Some("http/1.1"));
        for _ in 0..3 {
            assert_eq!(client.post("/check", r#"{"key":"v"}"#).status, 200, "{version:?}");
        }
        let only_h2 = Speaker::trusting(&all.ca, &[version]).offering(&["h2"]);
        assert!(only_h2.connect(service.address()).is_err(), "{version:?}");
    }
    assert_eq!(connected(&service, &all).post("/check", r#"{"key":"v"}"#).json()["remaining"], 93);
}

#[test]
fn a_service_that_cannot_be_trusted_is_not_asked() {
    let all = Certificates::new();
    let service = serving(&all, &[]);
    let other = text(&all.other_ca);
    let words = format!("its certificate was not issued by a CA in {other}");
    unanswered(&check(&service, &all.other_ca, &[]), &words);
    let public = run(&["check", "k", "--server", &service.url()]);
    unanswered(&public, "was not issued by a publicly known CA; --ca can name another");
    for (identity, words) in [
        (&all.expired, "its certificate has expired"),
        (&all.other_name, "its certificate is not for the name 127.0.0.1"),
    ] {
        let service = Service::start(&pair(identity));
        unanswered(&check(&service, &all.ca, &[]), words);
    }
    assert_eq!(connected(&service, &all).post("/check", r#"{"key":"k"}"#).json()["remaining"], 99);
}

#[test]
fn an_expired_certificate_is_warned_of() {
    let all = Certificates::new();
    let service = Service::start(&pair(&all.expired));
    let log = service.log();
    let words =
        format!("--tls-cert: {}: the certificate has expired", text(&all.expired.certificate));
    assert!(log.contains("WARN") && log.contains(&words), "{log}");
    assert!(!serving(&all, &[]).log().contains("WARN"));
}

#[test]
fn with_client_authorities_only_their_clients_are_let_in() {
    let all = Certificates::new();
    let service = serving(&all, &["--tls-client-ca", text(&all.ca)]);
    let as_client = |identity: &Identity| {
        let (certificate, key) = (text(&identity.certificate), text(&identity.key));
        check(&service, &all.ca, &["--client-cert", certificate, "--client-key", key])
    };
    let words = "it asks for a client certificate; give --client-cert and --client-key";
    unanswered(&check(&service, &all.ca, &[]), words);
    unanswered(&as_client(&all.stranger), "it refused the client certificate (");
    unanswered(&as_client(&all.expired), "it refused the client certificate (CertificateExpired)");
    let accepted = as_client(&all.client);
    assert_eq!((accepted.code, accepted.stderr.as_str()), (0, ""));
    assert!(accepted.stdout.starts_with("allowed: 99 of 100"), "{}", accepted.stdout);
    let by_environment = tollgate(&["check", "k", "--server", &service.url()])
        .env("TOLLGATE_CA", &all.ca)
        .env("TOLLGATE_CLIENT_CERT", &all.client.certificate)
        .env("TOLLGATE_CLIENT_KEY", &all.client.key)
        .output();
    assert_eq!(Ended::from(by_environment.unwrap()).code, 0);
    // In TLS 1.2 the service looks before the handshake ends, in 1.3 after it.
    for version in [&TLS12, &TLS13] {
        let speaker = Speaker::trusting(&all.ca, &[version]);
        let answered = speaker
            .connect(service.address())
            .and_then(|(mut client, _)| client.try_post("/check", br#"{"key":"k"}"#));
        assert!(answered.is_err(), "{version:?}: {answered:?}");
    }
}

#[test]
fn who_asks_clients_for_certificates_may_be_reached_by_other_machines() {
    let all = Certificates::new();
    let open = ["--http", "0.0.0.0:0"];
    let ended = refused(&[&open[..], &pair(&all.server)].concat(), &[]);
    assert!(ended.stderr.contains("--http: 0.0.0.0:0 can be reached"), "{}", ended.stderr);
    let asking = ["--tls-client-ca", text(&all.ca)];
    let service = start(&[&open[..], &pair(&all.server), &asking].concat(), &[]);
    assert!(service.url().starts_with("https://0.0.0.0:"), "{}", service.url());
}

#[test]
fn the_environment_and_the_settings_file_can_name_the_files() {
    let all = Certificates::new();
    let (certificate, key) = (text(&all.server.certificate), text(&all.server.key));
    let here = ["--http", "127.0.0.1:0"];
    let service = start(&here, &[("TOLLGATE_TLS_CERT", certificate), ("TOLLGATE_TLS_KEY", key)]);
    assert_eq!(check(&service, &all.ca, &[]).code, 0);
    let scratch = Scratch::new();
    let ca = text(&all.ca);
    let settings = format!("tls_cert: {certificate}\ntls_key: {key}\ntls_client_ca: {ca}\n");
    let service = Service::start(&["--config", &scratch.write("settings.yaml", &settings)]);
    unanswered(&check(&service, &all.ca, &[]), "it asks for a client certificate");
}

#[test]
fn files_that_cannot_be_used_are_named_before_anyone_is_listened_to() {
    let all = Certificates::new();
    let scratch = Scratch::new();
    let (certificate, key) = (text(&all.server.certificate), text(&all.server.key));
    let other_key = text(&all.client.key);
    let empty = scratch.write("empty.pem", "");
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let garbage = scratch.write("garbage.pem", garbage);
    // A key's file that was cut short: what there is of it must not be shown.
    let whole = fs::read_to_string(key).unwrap();
    let secret: String = whole.lines().nth(1).unwrap().chars().take(20).collect();
    let torn = scratch.write("torn.key", &whole[..whole.len() / 2]);
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
        (&["--tls-cert", &empty, "--tls-key", key], format!("--tls-cert: {empty}: holds no cert")),
        (
            &["--tls-cert", key, "--tls-key", key],
            format!("--tls-cert: {key}: holds no certificate"),
        ),
        (&["--tls-cert", &garbage, "--tls-key", key], format!("--tls-cert: {garbage}: holds a")),
        (
            &["--tls-cert", certificate, "--tls-key", certificate],
            format!("--tls-key: {certificate}: holds no private"),
        ),
        (
            &["--tls-cert", certificate, "--tls-key", &torn],
            format!("--tls-key: {torn}: holds no private"),
        ),
        (
            &["--tls-cert", certificate, "--tls-key", other_key],
            format!("--tls-key: {other_key}: is not the key of the certificate in {certificate}"),
        ),
        (
            &["--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", &empty],
            format!("--tls-client-ca: {empty}: holds no"),
        ),
        (
            &["--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", &garbage],
            format!("--tls-client-ca: {garbage}: holds a"),
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
fn files_of_a_client_that_cannot_be_used_are_usage() {
    let all = Certificates::new();
    let (certificate, key) = (text(&all.client.certificate), text(&all.client.key));
    for (args, words) in [
        (&["--ca", "/no/such"][..], "--ca: /no/such: No such file"),
        (&["--ca", key], "holds no certificate in PEM form"),
        (&["--client-cert", certificate], "--client-cert: needs --client-key too"),
        (&["--client-key", key], "--client-key: needs --client-cert too"),
        (
            &["--client-cert", certificate, "--client-key", text(&all.server.key)],
            "is not the key of the certificate in",
        ),
    ] {
        let ended = run(&[&["check", "k", "--server", "https://127.0.0.1:1"], args].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

#[test]
fn a_service_without_tls_is_told_as_one() {
    let service = Service::start(&[]);
    let url = service.url().replace("http://", "https://");
    unanswered(&run(&["check", "k", "--server", &url]), "TLS: is it http://?");
}

/// A service whose files can be replaced.
struct Rotating {
    all: Certificates,
    scratch: Scratch,
    service: Service,
}

impl Rotating {
    fn start() -> Self {
        let (all, scratch) = (Certificates::new(), Scratch::new());
        let [certificate, key] = Self::put(&scratch, &all.server);
        let service = Service::start(&["--tls-cert", &certificate, "--tls-key", &key]);
        Self { all, scratch, service }
    }

    fn put(scratch: &Scratch, identity: &Identity) -> [String; 2] {
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        [
            scratch.write("tls.pem", &read(&identity.certificate)),
            scratch.write("tls.key", &read(&identity.key)),
        ]
    }

    fn told(&self, words: &str) -> usize {
        self.service.log().matches(words).count()
    }
}

#[test]
fn replaced_certificates_are_shown_without_a_restart() {
    let Rotating { all, scratch, service } = Rotating::start();
    let mut early = connected(&service, &all);
    assert_eq!(early.get("/healthz").status, 200);
    unanswered(&check(&service, &all.other_ca, &[]), "was not issued by a CA");
    Rotating::put(&scratch, &all.stranger);
    service.wait_for_log("certificates reloaded");
    assert_eq!(check(&service, &all.other_ca, &[]).code, 0);
    unanswered(&check(&service, &all.ca, &[]), "was not issued by a CA");
    assert_eq!(early.get("/healthz").status, 200, "who was connected stays so");
}

#[test]
fn a_hangup_reads_certificates_at_once() {
    const DONE: &str = "certificates reloaded";
    let rotating = Rotating::start();
    let Rotating { all, scratch, service } = &rotating;
    // Nothing has changed, so no look by itself would say so.
    service.signal("HUP");
    service.wait_for_log(DONE);
    Rotating::put(scratch, &all.stranger);
    service.signal("HUP");
    eventually("they are read", || rotating.told(DONE) >= 2);
    assert_eq!(check(service, &all.other_ca, &[]).code, 0);
}

#[test]
fn bad_new_files_change_nothing_and_are_told_once() {
    const BAD: &str = "certificates not reloaded; the old ones serve on";
    let rotating = Rotating::start();
    let Rotating { all, scratch, service } = &rotating;
    scratch.write("tls.key", &fs::read_to_string(&all.stranger.key).unwrap());
    service.wait_for_log("is not the key of the certificate in");
    assert_eq!(check(service, &all.ca, &[]).code, 0);
    scratch.write("tls.pem", "");
    eventually("the next is told too", || rotating.told(BAD) == 2);
    assert_eq!(check(service, &all.ca, &[]).code, 0);
    let [certificate, _] = Rotating::put(scratch, &all.stranger);
    service.wait_for_log("certificates reloaded");
    assert_eq!(check(service, &all.other_ca, &[]).code, 0);
    fs::remove_file(certificate).unwrap();
    eventually("its loss is told", || rotating.told("tls.pem: No such file") == 1);
    let looks = Instant::now();
    eventually("it was looked for again", || looks.elapsed() > Duration::from_secs(7));
    assert_eq!(check(service, &all.other_ca, &[]).code, 0);
    assert_eq!(rotating.told(BAD), 3, "{}", service.log());
    assert!(!service.log().contains("PRIVATE"));
}

/// Connected, and saying nothing.
fn silent(service: &Service) -> TcpStream {
    let stream = TcpStream::connect(service.address()).unwrap();
    stream.set_read_timeout(Some(MAX_WAIT)).unwrap();
    stream
}

#[test]
fn a_handshake_that_does_not_come_is_cut_off_and_holds_nobody_up() {
    let all = Certificates::new();
    let service = serving(&all, &[]);
    let began = Instant::now();
    let mut held: Vec<TcpStream> = (0..20).map(|_| silent(&service)).collect();
    // The beginning of a record that never ends.
    held[0].write_all(&[22, 3, 1, 2, 0, 1]).unwrap();
    assert_eq!(check(&service, &all.ca, &[]).code, 0, "others are served meanwhile");
    for stream in &mut held {
        let mut told = Vec::new();
        let _ = stream.read_to_end(&mut told);
        assert!(told.is_empty(), "{told:?}");
    }
    let took = began.elapsed();
    assert!((Duration::from_secs(9)..Duration::from_secs(40)).contains(&took), "{took:?}");
}

#[test]
fn a_handshake_takes_the_place_of_a_connection() {
    let all = Certificates::new();
    let service = serving(&all, &["--max-connections", "1"]);
    let held = silent(&service);
    let mut waiting = silent(&service);
    waiting.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    waiting.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let error = waiting.read(&mut [0; 100]).expect_err("there is no place for it");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    drop(held);
    waiting.set_read_timeout(Some(MAX_WAIT)).unwrap();
    assert!(matches!(waiting.read(&mut [0; 100]), Ok(1..)), "now it is told that this is no TLS");
    drop(waiting);
    assert_eq!(connected(&service, &all).get("/healthz").status, 200);
}

#[test]
fn handshakes_do_not_hold_up_the_end() {
    let all = Certificates::new();
    let mut service = serving(&all, &["--drain-ms", "0"]);
    let mut agreed = connected(&service, &all);
    assert_eq!(agreed.get("/healthz").status, 200);
    let _held: Vec<TcpStream> = (0..20).map(|_| silent(&service)).collect();
    let began = Instant::now();
    service.signal("TERM");
    let (status, log) = service.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert!(!log.contains("cut off") && !log.contains("panicked"), "{log}");
}

#[test]
fn a_service_that_drains_still_agrees_and_answers() {
    let all = Certificates::new();
    let mut service = serving(&all, &["--drain-ms", "3000"]);
    let mut early = connected(&service, &all);
    assert_eq!(early.get("/healthz").status, 200);
    service.signal("TERM");
    service.wait_for_log("draining");
    for client in [&mut early, &mut connected(&service, &all)] {
        let reply = client.post("/check", r#"{"key":"k"}"#);
        assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    }
    assert_eq!(service.wait().0.code(), Some(0));
}

#[test]
fn a_termination_under_load_loses_no_request() {
    let all = Certificates::new();
    let mut service = serving(&all, &["--drain-ms", "1500"]);
    let answered: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
    thread::scope(|threads| {
        for answered in &answered {
            let client = connected(&service, &all);
            threads.spawn(|| ask_until_told(client, answered));
        }
        eventually("all are being served", || {
            answered.iter().all(|count| count.load(Ordering::Relaxed) > 50)
        });
        service.signal("TERM");
    });
    let (status, log) = service.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("cut off") && !log.contains("panicked"), "{log}");
}
