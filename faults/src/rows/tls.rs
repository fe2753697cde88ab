//! Invalid Redis certificates: at the start, or from some time on.

use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use tollgate_testkit::server::{Certificates, Identity, Server};

use super::common::{assert_exact, check_recovery, disconnect_all};
use crate::canary::{USER, login};
use crate::load::Load;
use crate::redis;
use crate::setup::Setup;
use crate::stage::Stage;
use crate::waiting::wait_for;

/// The first byte of a TLS handshake record.
const HANDSHAKE: u8 = 0x16;

fn node<'a>(stage: &'a Stage, port: u16, ca: &Path) -> Setup<'a> {
    let url = format!("rediss://{}127.0.0.1:{port}/0?ca={}", login(), ca.display());
    stage.node().redis(&url).patient()
}

pub(super) fn invalid_certificate_is_never_accepted(stage: &Stage) -> String {
    let all = Certificates::new();
    let invalid = [&all.stranger, &all.expired, &all.other_name];
    for identity in invalid {
        let server = redis::builder().tls_as(&all, identity).start();
        let reply = node(stage, server.tls_port(), &all.ca).fails_to_start();
        assert!(reply.contains("certificate"), "{reply}");
        assert_eq!(redis::calls(&server, "auth"), 0, "no password was sent");
    }
    assert_never_plain(stage, &all);
    let server = redis::builder().tls(&all).start();
    let node = node(stage, server.tls_port(), &all.ca).start();
    let mut back = Duration::ZERO;
    let tally = Load::open(vec![node.address()], 100).during(|| {
        for identity in invalid {
            set_certificate(&server, identity);
            node.wait_degraded();
            wait_for(Duration::from_secs(stage.scale().pick(1, 5)));
            set_certificate(&server, &all.server);
            back = node.wait_exact().max(back);
        }
    });
    tally.assert_answered(stage);
    assert_exact(stage, &[node.address()]);
    format!(
        "three invalid certificates fail the start; while running: {} answers, {} degraded, no 5xx; nothing in plain \
         text; {}",
        tally.count(),
        tally.degraded(),
        check_recovery(stage, back)
    )
}

/// Replaces the certificate of a server, and closes all connections.
fn set_certificate(server: &Server, identity: &Identity) {
    let path = |path: &Path| path.to_str().expect("the path is UTF-8").to_owned();
    let (certificate, key) = (path(&identity.certificate), path(&identity.key));
    let words = ["CONFIG", "SET", "tls-cert-file", &certificate, "tls-key-file", &key];
    let reply = server.raw().call(&words);
    assert!(!reply.is_error(), "{reply:?}");
    disconnect_all(server);
}

/// Asserts that a node sends nothing in plain text to a server that does not answer in TLS.
fn assert_never_plain(stage: &Stage, all: &Certificates) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("the listener has an address").port();
    let (sender, receiver) = channel();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut bytes = vec![0; 4096];
            let read = stream.read(&mut bytes).unwrap_or_default();
            bytes.truncate(read);
            drop(sender.send(bytes));
        }
    });
    // It may be a proxy whose server is down, so only `--require-redis` fails the start.
    let reply = node(stage, port, &all.ca).with("require-redis", "true").fails_to_start();
    assert!(reply.contains("Redis at"), "{reply}");
    let received: Vec<Vec<u8>> = receiver.try_iter().collect();
    assert!(!received.is_empty(), "the node did not connect");
    for bytes in received {
        let text = String::from_utf8_lossy(&bytes);
        let is_tls = bytes.first() == Some(&HANDSHAKE) && !text.contains(USER);
        assert!(is_tls, "plain text: {text}");
    }
}
