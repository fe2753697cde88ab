//! TLS servers with valid and invalid certificates, and with client certificates.

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
fn only_the_valid_certificate_is_accepted() {
    let all = Certificates::new();
    for flavor in Flavor::WITH_TLS {
        let server = Server::builder(flavor).tls(&all).start();
        assert_eq!(server.url(), format!("rediss://127.0.0.1:{}", server.tls_port()));
        assert_eq!(ping(&server, &all.ca, None).expect("the certificate is accepted"), "+PONG");
        assert_refused(ping(&server, &all.other_ca, None), "UnknownIssuer");
        server.restart();
        assert_eq!(ping(&server, &all.ca, None).expect("the certificate is accepted"), "+PONG");
        let plain = Raw::connect(server.tls_port()).try_call(&["PING"]);
        assert!(plain.is_err(), "{flavor} replies without TLS: {plain:?}");
        for (identity, reason) in [
            (&all.expired, "Expired"),
            (&all.other_name, "NotValidForName"),
            (&all.stranger, "UnknownIssuer"),
        ] {
            let server = Server::builder(flavor).tls_as(&all, identity).start();
            assert_refused(ping(&server, &all.ca, None), reason);
        }
    }
}

#[test]
fn mutual_tls_requires_a_client_certificate() {
    let all = Certificates::new();
    for flavor in Flavor::WITH_TLS {
        let server = Server::builder(flavor).mutual_tls(&all).start();
        let reply = ping(&server, &all.ca, Some(&all.client));
        assert_eq!(reply.expect("the certificate is accepted"), "+PONG");
        for other in [None, Some(&all.stranger), Some(&all.expired)] {
            assert!(ping(&server, &all.ca, other).is_err(), "{flavor} accepts {other:?}");
        }
    }
}

#[test]
fn start_without_tls_support_panics_with_the_reason() {
    let start = || drop(Server::builder(Flavor::Valkey).tls(&Certificates::new()).start());
    if let Err(panic) = catch_unwind(start) {
        let reason = panic.downcast_ref::<String>().expect("the panic has a message");
        assert!(reason.contains("valkey did not start: its program was built without TLS"));
    }
}

#[test]
fn drop_removes_certificates() {
    let all = Certificates::new();
    let ca = all.ca.clone();
    assert!(ca.is_file());
    drop(all);
    assert!(!ca.exists() && !ca.parent().expect("the file has a directory").exists());
}

/// Sends `PING` over TLS, trusting an authority, with an optional client certificate. Returns the reply.
fn ping(server: &Server, ca: &Path, client: Option<&Identity>) -> io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate(ca)).expect("a CA certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the default versions are supported")
        .with_root_certificates(roots);
    let config = match client {
        Some(identity) => {
            let key = PrivateKeyDer::from_pem_file(&identity.key).expect("a key");
            config
                .with_client_auth_cert(vec![certificate(&identity.certificate)], key)
                .expect("a pair")
        }
        None => config.with_no_client_auth(),
    };
    let name = "127.0.0.1".try_into().expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.tls_port()))?;
    stream.set_read_timeout(Some(MAX_WAIT))?;
    let mut stream = StreamOwned::new(connection, stream);
    stream.write_all(b"PING\r\n")?;
    let mut reply = [0; 5];
    stream.read_exact(&mut reply)?;
    Ok(String::from_utf8_lossy(&reply).into_owned())
}

fn certificate(path: &Path) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(path).expect("a certificate")
}

fn assert_refused(reply: io::Result<String>, reason: &str) {
    let error = reply.expect_err("the certificate is refused");
    assert!(format!("{error:?}").contains(reason), "{error:?}, not {reason}");
}
