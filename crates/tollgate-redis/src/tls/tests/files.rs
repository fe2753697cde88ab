//! Files that are missing, bad, late or gone.

use std::fs;
use std::path::Path;

use super::{Address, Secured, assert_answers, at, refusal};
use crate::fixtures::{LONG, text};
use crate::route::Route;

fn with_ca(secured: &Secured, ca: &str) -> Address {
    at(secured.tls_port(), &format!("?ca={ca}"))
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_named_in_one_line() {
    let secured = Secured::start();
    let [one, other] = [&secured.certificates.client, &secured.certificates.server];
    let (certificate, key, other_key) = (text(&one.certificate), text(&one.key), text(&other.key));
    let missing = secured.file("missing.pem");
    let empty = secured.write("empty.pem", "");
    let bad =
        secured.write("bad.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let client = |certificate: &str, key: &str| {
        secured.address_with(&format!("&cert={certificate}&key={key}"))
    };
    for (address, expected) in [
        (
            with_ca(&secured, &missing),
            format!("the CA file {missing} cannot be read: No such file"),
        ),
        (
            with_ca(&secured, &empty),
            format!("the CA file {empty} holds no certificate in PEM form"),
        ),
        (with_ca(&secured, &key), format!("the CA file {key} holds no certificate")),
        (with_ca(&secured, &bad), format!("the CA file {bad} holds a certificate that is none")),
        (client(&missing, &key), format!("the certificate file {missing} cannot be read")),
        (client(&certificate, &missing), format!("the key file {missing} cannot be read")),
        (
            client(&certificate, &certificate),
            format!("the key file {certificate} holds no private key"),
        ),
        (
            client(&certificate, &other_key),
            format!("the key file {other_key} is not for the certificate in {certificate}"),
        ),
    ] {
        let why = refusal(&address).await;
        assert!(why.starts_with(&expected), "{why}");
    }
}

#[tokio::test]
async fn files_are_read_once_they_are_there_and_then_no_more() {
    let secured = Secured::start();
    let late = secured.file("late.pem");
    let route = Route::from(with_ca(&secured, &late));
    assert!(route.connect(LONG).await.is_err());
    fs::copy(secured.ca(), &late).unwrap();
    assert!(route.connect(LONG).await.is_ok());
    fs::remove_file(&late).unwrap();
    assert!(route.clone().connect(LONG).await.is_ok());
}

#[tokio::test]
async fn a_file_may_hold_several_authorities() {
    let secured = Secured::start();
    let read = |ca: &Path| fs::read_to_string(ca).unwrap();
    let certificates = &secured.certificates;
    let both = format!("# ours\n{}\n{}", read(&certificates.other_ca), read(&certificates.ca));
    let bundle = secured.write("a bundle.pem", &both).replace(' ', "%20");
    assert_answers(&with_ca(&secured, &bundle)).await;
}
