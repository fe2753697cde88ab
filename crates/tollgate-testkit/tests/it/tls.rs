//! Servers show the certificates that tests want, and ask for those of clients.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tollgate_testkit::server::{Certificates, Flavor, Identity, Raw, Server};
use tollgate_testkit::wait::MAX_WAIT;

#[test]
fn only_the_right_certificate_is_believed() {
    let all = Certificates::new();
    for flavor in Flavor::WITH_TLS {
        let server = Server::builder(flavor).tls(&all).start();
        assert_eq!(server.url(), format!("rediss://127.0.0.1:{}", server.tls_port()));
        assert_eq!(ping(&server, &all.ca, None).expect("it is believed"), "+PONG");
        refused(ping(&server, &all.other_ca, None), "UnknownIssuer");
        server.restart();
        assert_eq!(ping(&server, &all.ca, None).expect("it is believed"), "+PONG");
        let plain = Raw::connect(server.tls_port()).try_call(&["PING"]);
        assert!(plain.is_err(), "{flavor} answers without TLS: {plain:?}");
        for (identity, reason) in [
            (&all.expired, "Expired"),
            (&all.other_name, "NotValidForName"),
            (&all.stranger, "UnknownIssuer"),
        ] {
            let server = Server::builder(flavor).tls_as(&all, identity).start();
            refused(ping(&server, &all.ca, None), reason);
        }
    }
}

#[test]
fn clients_are_asked_for_theirs() {
    let all = Certificates::new();
    for flavor in Flavor::WITH_TLS {
        let server = Server::builder(flavor).mutual_tls(&all).start();
        let answer = ping(&server, &all.ca, Some(&all.client));
        assert_eq!(answer.expect("it is believed"), "+PONG");
        for other in [None, Some(&all.stranger), Some(&all.expired)] {
            assert!(ping(&server, &all.ca, other).is_err(), "{flavor} believes {other:?}");
        }
    }
}

#[test]
fn who_has_no_tls_says_so() {
    let start = || drop(Server::builder(Flavor::Valkey).tls(&Certificates::new()).start());
    if let Err(panic) = catch_unwind(start) {
        let reason = panic.downcast_ref::<String>().expect("panics tell why");
        assert!(reason.contains("valkey did not start: its program was built without TLS"));
    }
}

#[test]
fn nothing_is_left_of_certificates() {
    let all = Certificates::new();
    let ca = all.ca.clone();
    assert!(ca.is_file());
    drop(all);
    assert!(!ca.exists() && !ca.parent().expect("it was in a directory").exists());
}

/// The answer to one who believes an authority, and may have a certificate.
fn ping(server: &Server, ca: &Path, client: Option<&Identity>) -> io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate(ca)).expect("it is an authority");
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("they are known")
        .with_root_certificates(roots);
    let config = match client {
        Some(own) => {
            let key = PrivateKeyDer::from_pem_file(&own.key).expect("a key");
            config.with_client_auth_cert(vec![certificate(&own.certificate)], key).expect("a pair")
        }
        None => config.with_no_client_auth(),
    };
    let name = "127.0.0.1".try_into().expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.tls_port()))?;
    stream.set_read_timeout(Some(MAX_WAIT))?;
    let mut stream = StreamOwned::new(connection, stream);
    stream.write_all(b"PING\r\n")?;
    let mut answer = [0; 5];
    stream.read_exact(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn certificate(path: &Path) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(path).expect("a certificate")
}

fn refused(answer: io::Result<String>, reason: &str) {
    let error = answer.expect_err("it is not believed");
    assert!(format!("{error:?}").contains(reason), "{error:?}, not {reason}");
}
