//! Certificate files that are missing, invalid, late or removed.

use std::fs;
use std::path::Path;

use super::{Address, TlsServer, assert_replies, at, connect_error};
use crate::connection::Route;
use crate::fixtures::{LONG, text};

fn with_ca(tls_server: &TlsServer, ca: &str) -> Address {
    at(tls_server.tls_port(), &format!("?ca={ca}"))
}

#[tokio::test]
async fn errors_name_the_unusable_file_in_one_line() {
    let tls_server = TlsServer::start();
    let [one, other] = [&tls_server.certificates.client, &tls_server.certificates.server];
    let (certificate, key, other_key) = (text(&one.certificate), text(&one.key), text(&other.key));
    let missing = tls_server.file("missing.pem");
    let empty = tls_server.write("empty.pem", "");
    let bad = tls_server
        .write("bad.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let client = |certificate: &str, key: &str| {
        tls_server.address_with(&format!("&cert={certificate}&key={key}"))
    };
    for (address, expected) in [
        (
            with_ca(&tls_server, &missing),
            format!("the CA file {missing} cannot be read: No such file"),
        ),
        (
            with_ca(&tls_server, &empty),
            format!("the CA file {empty} contains no certificate in PEM format"),
        ),
        (with_ca(&tls_server, &key), format!("the CA file {key} contains no certificate")),
        (with_ca(&tls_server, &bad), format!("the CA file {bad} contains an invalid certificate")),
        (client(&missing, &key), format!("the certificate file {missing} cannot be read")),
        (client(&certificate, &missing), format!("the key file {missing} cannot be read")),
        (
            client(&certificate, &certificate),
            format!("the key file {certificate} contains no private key"),
        ),
        (
            client(&certificate, &other_key),
            format!("the key file {other_key} does not match the certificate in {certificate}"),
        ),
    ] {
        let error = connect_error(&address).await;
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[tokio::test]
async fn files_are_read_once_after_they_appear() {
    let tls_server = TlsServer::start();
    let late = tls_server.file("late.pem");
    let route = Route::from(with_ca(&tls_server, &late));
    assert!(route.connect(LONG).await.is_err());
    fs::copy(tls_server.ca(), &late).unwrap();
    assert!(route.connect(LONG).await.is_ok());
    fs::remove_file(&late).unwrap();
    assert!(route.clone().connect(LONG).await.is_ok());
}

#[tokio::test]
async fn ca_file_may_contain_several_authorities() {
    let tls_server = TlsServer::start();
    let read = |ca: &Path| fs::read_to_string(ca).unwrap();
    let certificates = &tls_server.certificates;
    let both = format!("# ours\n{}\n{}", read(&certificates.other_ca), read(&certificates.ca));
    let bundle = tls_server.write("a bundle.pem", &both).replace(' ', "%20");
    assert_replies(&with_ca(&tls_server, &bundle)).await;
}
