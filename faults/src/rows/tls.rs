//! Certificates that do not hold, from the start or from now on.

use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use tollgate_testkit::server::{Certificates, Identity, Server};

use super::common::{assert_exact, assert_recovered, disconnect_all};
use crate::canary::{USER, login};
use crate::load::Load;
use crate::redis;
use crate::setup::Setup;
use crate::stage::Stage;
use crate::waiting::wait_for;

/// The first byte of whoever wants to speak TLS.
const HANDSHAKE: u8 = 0x16;

fn node<'a>(stage: &'a Stage, port: u16, ca: &Path) -> Setup<'a> {
    let url = format!("rediss://{}127.0.0.1:{port}/0?ca={}", login(), ca.display());
    stage.node().redis(&url).with("redis-timeout-ms", "1000")
}

pub(super) fn invalid_certificate_is_never_accepted(stage: &Stage) -> String {
    let all = Certificates::new();
    let bad = [&all.stranger, &all.expired, &all.other_name];
    for identity in bad {
        let server = redis::builder().tls_as(&all, identity).start();
        let reply = node(stage, server.tls_port(), &all.ca).fails_to_start();
        assert!(reply.contains("certificate"), "{reply}");
        assert_eq!(redis::calls(&server, "auth"), 0, "nobody has shown a password");
    }
    assert_never_plain(stage, &all);
    let server = redis::builder().tls(&all).start();
    let node = node(stage, server.tls_port(), &all.ca).start();
    let mut back = Duration::ZERO;
    let tally = Load::open(vec![node.address()], 100).during(|| {
        for identity in bad {
            show(&server, identity);
            node.wait_degraded();
            wait_for(Duration::from_secs(stage.scale().pick(1, 5)));
            show(&server, &all.server);
            back = node.wait_exact().max(back);
        }
    });
    tally.assert_answered();
    assert_exact(&[node.address()]);
    format!(
        "three bad certificates end the start; shown later: {} answers, {} degraded, no 5xx; nothing in \
         plain text; {}",
        tally.count(),
        tally.degraded(),
        assert_recovered(back)
    )
}

/// Shows another certificate to those who connect from now on.
fn show(server: &Server, identity: &Identity) {
    let path = |path: &Path| path.to_str().expect("a path of ours is text").to_owned();
    let (certificate, key) = (path(&identity.certificate), path(&identity.key));
    let words = ["CONFIG", "SET", "tls-cert-file", &certificate, "tls-key-file", &key];
    let answer = server.raw().call(&words);
    assert!(!answer.is_error(), "{answer:?}");
    disconnect_all(server);
}

/// Who is not answered in TLS is reply nothing that could be read.
fn assert_never_plain(stage: &Stage, all: &Certificates) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it listens").port();
    let (heard, all_heard) = channel();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut bytes = vec![0; 4096];
            let read = stream.read(&mut bytes).unwrap_or_default();
            bytes.truncate(read);
            drop(heard.send(bytes));
        }
    });
    let reply = node(stage, port, &all.ca).fails_to_start();
    assert!(reply.contains("Redis at"), "{reply}");
    let heard: Vec<Vec<u8>> = all_heard.try_iter().collect();
    assert!(!heard.is_empty(), "nobody called");
    for bytes in heard {
        let text = String::from_utf8_lossy(&bytes);
        let is_tls = bytes.first() == Some(&HANDSHAKE) && !text.contains(USER);
        assert!(is_tls, "plain text: {text}");
    }
}
